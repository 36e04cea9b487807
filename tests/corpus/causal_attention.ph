// Causal attention with a running softmax. Work items are pairs of a head and a tile of queries; an item walks
// the keys up to its own diagonal. The heads lie below each other: head h has rows h * L .. h * L + L, and L is a
// whole number of tiles.
//
// run: kernel=attention HEADS=2 L=64 ROWS=128 D=32 Q=zeros K=zeros V=ones O=zeros grid=1
// expect: O[127, 31] = 1.0
// run: kernel=attention HEADS=2 L=64 ROWS=128 D=32 Q=zeros K=ones V=ones O=zeros grid=3
// expect: O[0, 0] = 1.0
// expect: O[64, 5] = 1.0
// run: kernel=attention HEADS=1 L=64 ROWS=64 D=32 Q=zeros K=zeros V=iota O=zeros grid=5
// expect: O[0, 3] = 3.0
// expect: O[2, 0] = 32.0
// expect: O[63, 0] = 1008.0
@launch(128)
@persistent
@autotune(D in [32], T in [32])
kernel attention(Q: tensor<f32>[ROWS, D], K: tensor<f32>[ROWS, D], V: tensor<f32>[ROWS, D], O: tensor<f32>[ROWS, D],
    HEADS: i32, L: i32) {
  let per_head = L / T
  for v in range(ctx.block.x, HEADS * per_head, ctx.blocks.x) {
    let base = v / per_head * L
    let q = v % per_head * T
    var top: tile<f32>[T, 1] = -3.0e38
    var den: tile<f32>[T, 1] = 0.0
    var acc: tile<f32>[T, D] = 0.0
    for k in range(0, q + T, T) {
      let raw = dot_t(Q[base + q :+ T, 0 :+ D], K[base + k :+ T, 0 :+ D]) * 0.17677669
      let down = transpose(iota(T)) + q
      let score = where(iota(T) + k <= down, raw, -3.0e38)
      let higher = tmax(top, rowmax(score))
      let weight = exp(score - higher)
      let fade = exp(top - higher)
      den = den * fade + rowsum(weight)
      acc = acc * fade + dot(weight, V[base + k :+ T, 0 :+ D])
      top = higher
    }
    O[base + q :+ T, 0 :+ D] = acc / den
  }
}

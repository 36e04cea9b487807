// Sums over everything from the diagonal on, in both forms that people write: tiles dealt out to a fixed set of
// blocks, and one tile a block. A tile's own part is a triangle; L is ones on and below the diagonal.
//
// run: kernel=suffix N=200 X=ones Y=zeros grid=1
// expect: Y[0, 0] = 200.0
// expect: Y[0, 199] = 1.0
// run: kernel=suffix N=200 X=ones Y=zeros grid=3
// expect: Y[0, 64] = 136.0
// expect: Y[0, 198] = 2.0
// run: kernel=suffix_plain N=200 X=ones Y=zeros
// expect: Y[0, 1] = 199.0
// expect: Y[0, 128] = 72.0
@launch(128)
@persistent
@autotune(T in [64])
kernel suffix(X: tensor<f32>[1, N], Y: tensor<f32>[1, N]) {
  for q in range(ctx.block.x * T, N, ctx.blocks.x * T) {
    var acc: tile<f32>[1, T] = 0.0
    for t in range(q, N, T) {
      let down = transpose(iota(T)) + t
      let across = iota(T) + q
      acc += dot(X[0 :+ 1, t :+ T], where(down >= across, 1.0, 0.0))
    }
    Y[0 :+ 1, q :+ T] = acc
  }
}

@launch(128)
@autotune(T in [64])
kernel suffix_plain(X: tensor<f32>[1, N], Y: tensor<f32>[1, N]) {
  let p = ctx.block.x
  var acc: tile<f32>[1, T] = 0.0
  for t in range(p * T, N, T) {
    let down = transpose(iota(T)) + t
    let across = iota(T) + p * T
    acc += dot(X[0 :+ 1, t :+ T], where(down >= across, 1.0, 0.0))
  }
  Y[0 :+ 1, p * T :+ T] = acc
}

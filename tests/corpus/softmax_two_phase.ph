// The softmax of one long row by all blocks together: each finds the maximum of its tiles and its sum of
// exponentials below that maximum; after the barrier everybody combines the pairs in the same way.
//
// run: kernel=long_softmax N=3000 X=iota Y=zeros TOP=zeros DEN=zeros grid=1
// expect: Y[0, 2999] = 0.63212056
// run: kernel=long_softmax N=3000 X=iota Y=zeros TOP=ones DEN=ones grid=4
// expect: Y[0, 2999] = 0.63212056
// expect: Y[0, 2998] = 0.23254416
// run: kernel=long_softmax N=1000 X=zeros Y=zeros TOP=ones DEN=ones grid=5
// expect: Y[0, 0] = 0.001
@launch(256)
@persistent
@autotune(TILE in [512], SLOTS in [2048])
kernel long_softmax(X: tensor<f32>[1, N], Y: tensor<f32>[1, N], TOP: tensor<f32>[1, SLOTS],
    DEN: tensor<f32>[1, SLOTS], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  var top: tile<f32>[1, 1] = -3.0e38
  var den: tile<f32>[1, 1] = 0.0
  for t in range(p * TILE, N, ctx.blocks.x * TILE) {
    let x = where(iota(TILE) + t < N, X[0 :+ 1, t :+ TILE], -3.0e38)
    let higher = tmax(top, rowmax(x))
    den = den * exp(top - higher) + rowsum(exp(x - higher))
    top = higher
  }
  TOP[0 :+ 1, p :+ 1] = top
  DEN[0 :+ 1, p :+ 1] = den
  grid_barrier(BAR)
  let filled = iota(SLOTS) < ctx.blocks.x
  let tops = where(filled, TOP[0 :+ 1, 0 :+ SLOTS], -3.0e38)
  let highest = rowmax(tops)
  let whole = rowsum(where(filled, DEN[0 :+ 1, 0 :+ SLOTS], 0.0) * exp(tops - highest))
  for t in range(p * TILE, N, ctx.blocks.x * TILE) {
    Y[0 :+ 1, t :+ TILE] = exp(X[0 :+ 1, t :+ TILE] - highest) / whole
  }
}

// Inclusive prefix sum in three phases: each tile by itself, then one block runs over the tiles' sums, then every
// tile but the first adds what stands before it.
//
// run: kernel=scan N=1000 X=ones Y=zeros SUM=zeros TILES=16 grid=1
// expect: Y[999, 0] = 1000.0
// run: kernel=scan N=1000 X=ones Y=zeros SUM=ones TILES=16 grid=7
// expect: Y[63, 0] = 64.0
// expect: Y[64, 0] = 65.0
// expect: Y[999, 0] = 1000.0
@launch(128)
@persistent
@autotune(TILE in [64])
kernel scan(X: tensor<f32>[N, 1], Y: tensor<f32>[N, 1], SUM: tensor<f32>[TILES], BAR: tensor<i32>[2]) {
  let count = (N + TILE - 1) / TILE
  for i in range(ctx.block.x, count, ctx.blocks.x) {
    var inside = cumsum(X[i * TILE :+ TILE, 0 :+ 1])
    Y[i * TILE :+ TILE, 0 :+ 1] = inside
    SUM[i] = inside[TILE - 1, 0]
  }
  grid_barrier(BAR)
  if ctx.block.x == 0 {
    var before = 0.0
    for i in range(0, count) {
      before += SUM[i]
      SUM[i] = before
    }
  }
  grid_barrier(BAR)
  for i in range(ctx.block.x, count, ctx.blocks.x) {
    if i > 0 {
      Y[i * TILE :+ TILE, 0 :+ 1] += SUM[i - 1]
    }
  }
}

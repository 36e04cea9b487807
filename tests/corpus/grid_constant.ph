// The older idiom: the grid's size is a constant of the kernel, which the launcher binds to what it launches. In
// both forms, as the step of a loop and as the factor of a round.
//
// run: kernel=strided N=1000 X=iota grid=1
// expect: X[999] = 1999.0
// run: kernel=strided N=1000 X=iota grid=3
// expect: X[0] = 1.0
// expect: X[999] = 1999.0
// run: kernel=by_rounds N=1000 X=iota BLOCKS=4 grid=4
// expect: X[256] = 513.0
@launch(128)
@persistent
@autotune(BLOCKS in [64], TILE in [128])
kernel strided(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * TILE, N, BLOCKS * TILE) {
    X[t :+ TILE] = X[t :+ TILE] * 2.0
  }
  grid_barrier(BAR)
  for t in range(ctx.block.x * TILE, N, BLOCKS * TILE) {
    X[t :+ TILE] = X[t :+ TILE] + 1.0
  }
}

@launch(128)
@persistent
@autotune(BLOCKS in [8], TILE in [128])
kernel by_rounds(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let count = (N + BLOCKS * TILE - 1) / (BLOCKS * TILE)
  for r in range(0, count) {
    let t = (ctx.block.x + r * BLOCKS) * TILE
    X[t :+ TILE] = X[t :+ TILE] * 2.0 + 1.0
    grid_barrier(BAR)
  }
}

// Smoothing with two rows of one tensor taking turns; whole tiles.
//
// run: kernel=smooth N=1000 U=ones grid=1
// expect: U[0, 0] = 1.0
// run: kernel=smooth N=1000 U=ones grid=5
// expect: U[0, 999] = 0.0625
// expect: U[1, 999] = 0.125
// expect: U[0, 500] = 1.0
@launch(256)
@persistent
@autotune(TILE in [256], STEPS in [4])
kernel smooth(U: tensor<f32>[2, N], BAR: tensor<i32>[2]) {
  for s in range(0, STEPS) {
    for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
      let here = U[s % 2 :+ 1, t :+ TILE]
      let right = U[s % 2 :+ 1, t + 1 :+ TILE]
      U[(s + 1) % 2 :+ 1, t :+ TILE] = here * 0.5 + right * 0.5
    }
    grid_barrier(BAR)
  }
}

// A three-point average that swaps its buffers by the parity of the step. An even number of steps leaves the
// result in A. What lies outside the row counts as 0.
//
// run: kernel=average N=1000 A=ones B=zeros grid=1
// expect: A[500] = 1.0
// expect: A[0] = 0.625
// run: kernel=average N=1000 A=ones B=zeros grid=6
// expect: A[999] = 0.625
// expect: A[1] = 0.9375
// expect: A[255] = 1.0
@launch(256)
@persistent
@autotune(TILE in [256], STEPS in [2])
kernel average(A: tensor<f32>[N], B: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for s in range(0, STEPS) {
    for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
      if s % 2 == 0 {
        B[t :+ TILE] = A[t - 1 :+ TILE] * 0.25 + A[t :+ TILE] * 0.5 + A[t + 1 :+ TILE] * 0.25
      } else {
        A[t :+ TILE] = B[t - 1 :+ TILE] * 0.25 + B[t :+ TILE] * 0.5 + B[t + 1 :+ TILE] * 0.25
      }
    }
    grid_barrier(BAR)
  }
}

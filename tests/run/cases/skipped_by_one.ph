// One block of four goes past the barrier.
// run: kernel=skip N=4096 X=iota grid=4
// expect: fault=deadlock
@persistent
kernel skip(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  if ctx.block.x != 3 {
    grid_barrier(BAR)
  }
}

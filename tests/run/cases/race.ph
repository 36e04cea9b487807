// Each block reads and writes half of what its neighbour owns.
// run: kernel=overlap N=4096 X=iota grid=4
// expect: fault=race
@persistent
kernel overlap(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  X[p * 64 :+ 128] = X[p * 64 :+ 128] + 1.0
  grid_barrier(BAR)
}

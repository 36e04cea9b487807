// Two arms of one branch each hold a barrier: to the blocks these are two different calls.
// run: kernel=arms N=512 X=iota Y=zeros grid=4
// expect: fault=deadlock
@persistent
kernel arms(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  if p < 2 {
    X[p * 64 :+ 64] = X[p * 64 :+ 64] + 1.0
    grid_barrier(BAR)
  } else {
    Y[p * 64 :+ 64] = Y[p * 64 :+ 64] + 1.0
    grid_barrier(BAR)
  }
}

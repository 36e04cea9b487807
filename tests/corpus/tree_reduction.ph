// A sum by halves: each pass folds the upper half of what is left onto the lower half. An odd cell in the middle
// waits for its turn.
//
// run: kernel=fold N=1000 X=ones grid=1
// expect: X[0] = 1000.0
// run: kernel=fold N=777 X=ones grid=4
// expect: X[0] = 777.0
@launch(64)
@persistent
kernel fold(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  var width = N
  while width > 1 {
    let half = (width + 1) / 2
    for i in range(ctx.block.x, width - half, ctx.blocks.x) {
      X[i] = X[i] + X[i + half]
    }
    grid_barrier(BAR)
    width = half
  }
}

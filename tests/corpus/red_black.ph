// Red-black relaxation in place: a sweep changes the cells of one colour and reads only those of the other.
// Cells 0 and N - 1 stay as they are.
//
// run: kernel=red_black N=41 X=ones STEPS=3 grid=1
// expect: X[20] = 1.0
// run: kernel=red_black N=5 X=iota STEPS=2 grid=3
// expect: X[0] = 0.0
// expect: X[2] = 2.0
// expect: X[4] = 4.0
@launch(32)
@persistent
kernel red_black(X: tensor<f32>[N], BAR: tensor<i32>[2], STEPS: i32) {
  for s in range(0, STEPS) {
    for colour in range(0, 2) {
      for i in range(ctx.block.x, (N - 1 - colour) / 2, ctx.blocks.x) {
        let here = 2 * i + 1 + colour
        X[here] = (X[here - 1] + X[here + 1]) * 0.5
      }
      grid_barrier(BAR)
    }
  }
}

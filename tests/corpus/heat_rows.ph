// Heat on a plate, old and new plate kept as the two halves of one tensor: row 0 of the pair is read while row 1
// is written, then the other way round. The plate is H x W, stored as one row of each half; its
// rim never changes and is the same in both.
//
// run: kernel=heat H=40 W=50 CELLS=2000 U=ones grid=1
// expect: U[0, 1025] = 1.0
// run: kernel=heat H=40 W=50 CELLS=2000 U=ones grid=7
// expect: U[0, 0] = 1.0
// expect: U[0, 1025] = 1.0
// expect: U[1, 1999] = 1.0
@launch(128)
@persistent
@autotune(STEPS in [4])
kernel heat(U: tensor<f32>[2, CELLS], BAR: tensor<i32>[2], H: i32, W: i32) {
  for s in range(0, STEPS) {
    let old = s % 2
    let new = (s + 1) % 2
    for y in range(ctx.block.x + 1, H - 1, ctx.blocks.x) {
      for x in range(1, W - 1) {
        let here = y * W + x
        let around = U[old, here - 1] + U[old, here + 1] + U[old, here - W] + U[old, here + W]
        U[new, here] = U[old, here] * 0.5 + around * 0.125
      }
    }
    grid_barrier(BAR)
  }
}

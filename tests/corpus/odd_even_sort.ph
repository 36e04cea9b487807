// Odd-even transposition: N rounds, each comparing disjoint pairs of neighbours, with a barrier after each.
//
// run: kernel=odd_even N=31 X=iota grid=1
// expect: X[30] = 30.0
// run: kernel=odd_even N=31 X=random:seed=3 grid=4
// expect: X[0] = 0.001490083523094654
// expect: X[30] = 0.9734602570533752
@launch(32)
@persistent
kernel odd_even(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for round in range(0, N) {
    let shift = round % 2
    for i in range(ctx.block.x, (N - shift) / 2, ctx.blocks.x) {
      let a = 2 * i + shift
      let low = X[a]
      let high = X[a + 1]
      if high < low {
        X[a] = high
        X[a + 1] = low
      }
    }
    grid_barrier(BAR)
  }
}

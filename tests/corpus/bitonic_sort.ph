// A bitonic sorting network over a power of two of keys. In the pass with distance d, pair i joins the cells
// i / d * 2 d + i % d and that plus d: every cell is in one pair.
//
// run: kernel=bitonic N=64 X=iota grid=1
// expect: X[0] = 0.0
// expect: X[63] = 63.0
// run: kernel=bitonic N=64 X=iota grid=5
// expect: X[0] = 0.0
// expect: X[33] = 33.0
@launch(32)
@persistent
kernel bitonic(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  var size = 2
  while size <= N {
    var d = size / 2
    while d > 0 {
      for i in range(ctx.block.x, N / 2, ctx.blocks.x) {
        let a = i / d * 2 * d + i % d
        let low = X[a]
        let high = X[a + d]
        let rising = a / size % 2 == 0
        if (high < low) == rising && high != low {
          X[a] = high
          X[a + d] = low
        }
      }
      grid_barrier(BAR)
      d /= 2
    }
    size *= 2
  }
}

// A promise that this size breaks, and one that it keeps.
// run: N=100 X=ones
// expect: fault=aligned-broken
// run: N=128 X=ones
// expect: X[127] = 2.0
@aligned(N = 64)
kernel double(X: tensor<f32>[N]) {
  X[ctx.block.x * 64 :+ 64] = X[ctx.block.x * 64 :+ 64] * 2.0
}

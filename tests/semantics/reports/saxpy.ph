// y = alpha * x + y, a tile a block. Nothing here names the grid: the stored span says that it is
// ceil(N / BLOCK), and the last tile is masked where it runs past the end.
//
// run: kernel=saxpy N=100000 X=iota Y=ones alpha=2.5
// expect: Y[0] = 1.0
// expect: Y[3] = 8.5
// expect: Y[99999] = 249998.5

@autotune(BLOCK in [1024, 4096])
kernel saxpy(X: tensor<f32>[N], Y: tensor<f32>[N], alpha: f32) {
  let start = ctx.block.x * BLOCK
  Y[start :+ BLOCK] = X[start :+ BLOCK] * alpha + Y[start :+ BLOCK]
}

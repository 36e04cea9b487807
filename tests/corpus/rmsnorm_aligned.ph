// RMS norm of rows whose length is promised to be a whole number of tiles, so that no access needs a mask.
//
// run: kernel=rmsnorm M=5 N=512 X=ones W=iota Y=zeros grid=1
// expect: Y[4, 511] = 510.99744
// run: kernel=rmsnorm M=5 N=512 X=ones W=iota Y=zeros grid=3
// expect: Y[3, 256] = 255.99872
@launch(128)
@persistent
@autotune(TILE in [256])
@aligned(N = TILE)
kernel rmsnorm(X: tensor<f32>[M, N], W: tensor<f32>[1, N], Y: tensor<f32>[M, N]) {
  for row in range(ctx.block.x, M, ctx.blocks.x) {
    var square: tile<f32>[1, 1] = 0.0
    for t in range(0, N, TILE) {
      let x = X[row :+ 1, t :+ TILE]
      square += rowsum(x * x)
    }
    let scale = 1.0 / sqrt(square / f32(N) + 1e-5)
    for t in range(0, N, TILE) {
      Y[row :+ 1, t :+ TILE] = X[row :+ 1, t :+ TILE] * scale * W[0 :+ 1, t :+ TILE]
    }
  }
}

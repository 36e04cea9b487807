// Layer norm, whole rows to a block, blocks striding over the rows. Nobody waits for anybody.
//
// run: kernel=layernorm M=7 N=5 X=iota SCALE=ones SHIFT=zeros Y=zeros grid=1
// expect: Y[0, 2] = 0.0
// expect: Y[6, 4] = 1.41421
// run: kernel=layernorm M=7 N=5 X=iota SCALE=ones SHIFT=ones Y=zeros grid=3
// expect: Y[6, 0] = -0.41421
// run: kernel=layernorm M=2 N=5 X=iota SCALE=ones SHIFT=zeros Y=zeros grid=4
// expect: Y[1, 4] = 1.41421
@launch(128)
@persistent
@autotune(TILE in [256, 1024])
kernel layernorm(X: tensor<f32>[M, N], SCALE: tensor<f32>[1, N], SHIFT: tensor<f32>[1, N], Y: tensor<f32>[M, N]) {
  for row in range(ctx.block.x, M, ctx.blocks.x) {
    var sum: tile<f32>[1, 1] = 0.0
    for t in range(0, N, TILE) {
      sum += rowsum(X[row :+ 1, t :+ TILE])
    }
    let mean = sum / f32(N)
    var square: tile<f32>[1, 1] = 0.0
    for t in range(0, N, TILE) {
      let off = where(iota(TILE) + t < N, X[row :+ 1, t :+ TILE] - mean, 0.0)
      square += rowsum(off * off)
    }
    let scale = 1.0 / sqrt(square / f32(N) + 1e-5)
    for t in range(0, N, TILE) {
      let even = (X[row :+ 1, t :+ TILE] - mean) * scale
      Y[row :+ 1, t :+ TILE] = even * SCALE[0 :+ 1, t :+ TILE] + SHIFT[0 :+ 1, t :+ TILE]
    }
  }
}

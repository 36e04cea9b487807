// Layers of x = x + max(x W, 0) V in one launch. Each half of a layer needs whole rows that other blocks have
// written, so each half ends in a barrier. The layers' weights lie below each other.
//
// run: kernel=residual LAYERS=2 M=20 D=16 H=48 DL=32 HL=96 X=ones W=zeros V=ones T=zeros grid=1
// expect: X[19, 15] = 1.0
// run: kernel=residual LAYERS=2 M=20 D=16 H=48 DL=32 HL=96 X=ones W=ones V=ones T=zeros grid=3
// expect: T[0, 0] = 12304.0
// expect: X[19, 15] = 591361.0
@launch(128)
@persistent
@autotune(BM in [16], BN in [16], BK in [16])
kernel residual(X: tensor<f32>[M, D], W: tensor<f32>[DL, H], V: tensor<f32>[HL, D], T: tensor<f32>[M, H],
    BAR: tensor<i32>[2], LAYERS: i32) {
  let rows = (M + BM - 1) / BM
  let wide = (H + BN - 1) / BN
  let narrow = (D + BN - 1) / BN
  for layer in range(0, LAYERS) {
    for v in range(ctx.block.x, rows * wide, ctx.blocks.x) {
      let i = v / wide * BM
      let j = v % wide * BN
      var acc: tile<f32>[BM, BN] = 0.0
      for k in range(0, D, BK) {
        acc += dot(X[i :+ BM, k :+ BK], W[layer * D + k :+ BK, j :+ BN])
      }
      T[i :+ BM, j :+ BN] = tmax(acc, 0.0)
    }
    grid_barrier(BAR)
    for v in range(ctx.block.x, rows * narrow, ctx.blocks.x) {
      let i = v / narrow * BM
      let j = v % narrow * BN
      var acc: tile<f32>[BM, BN] = X[i :+ BM, j :+ BN]
      for k in range(0, H, BK) {
        acc += dot(T[i :+ BM, k :+ BK], V[layer * H + k :+ BK, j :+ BN])
      }
      X[i :+ BM, j :+ BN] = acc
    }
    grid_barrier(BAR)
  }
}

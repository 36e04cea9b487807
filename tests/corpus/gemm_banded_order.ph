// The same tiles visited in bands of GROUP rows, so that blocks that run together share rows of A and columns
// of B in the cache. The order is a rearrangement of 0 .. nx * ny, short last band included.
//
// run: kernel=gemm_banded M=100 N=70 K=20 A=ones B=ones C=zeros grid=1
// expect: C[99, 69] = 20.0
// run: kernel=gemm_banded M=100 N=70 K=20 A=ones B=ones C=zeros grid=5
// expect: C[0, 0] = 20.0
// expect: C[64, 69] = 20.0
@launch(128)
@persistent
@autotune(BM in [32], BN in [32], BK in [16], GROUP in [3])
kernel gemm_banded(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  let nx = (N + BN - 1) / BN
  let ny = (M + BM - 1) / BM
  for v in range(ctx.block.x, nx * ny, ctx.blocks.x) {
    let band = v / (GROUP * nx)
    let inside = v % (GROUP * nx)
    var height = ny - band * GROUP
    if height > GROUP {
      height = GROUP
    }
    let row = (band * GROUP + inside % height) * BM
    let column = inside / height * BN
    var acc: tile<f32>[BM, BN] = 0.0
    for k in range(0, K, BK) {
      acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
    }
    C[row :+ BM, column :+ BN] = acc
  }
}

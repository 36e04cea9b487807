// C = A B in f32 on the ordinary units: every sum is one chain of fused multiply-adds along K. A block owns one tile of C;
// whatever runs past an edge reads as 0 and is not stored, so any M, N and K will do.

@dynshared
@launch(256)
@autotune(BM in [128], BN in [256, 128], BK in [16, 8])
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  let row = ctx.block.y * BM
  let column = ctx.block.x * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {
    acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
  }
  C[row :+ BM, column :+ BN] = acc
}

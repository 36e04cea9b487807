// C = A B on tensor cores, f32 sums. A block owns one tile of C and walks along K; whatever runs past an edge reads
// as 0 and is not stored, so any M, N and K will do.

@tensorcore
@dynshared
@launch(256)
@autotune(BM in [128], BN in [256], BK in [64])
kernel gemm(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f16>[M, N]) {
  let row = ctx.block.y * BM
  let column = ctx.block.x * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {
    acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
  }
  C[row :+ BM, column :+ BN] = acc
}

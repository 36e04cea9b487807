// The product of gemm_f32.ph in other forms: with B turned, with what is scaled and added at the end, and through views
// that are named and counted in another way.

@dynshared
@launch(256)
@autotune(BM in [128], BN in [256], BK in [16])
kernel turned(A: tensor<f32>[M, K], B: tensor<f32>[N, K], C: tensor<f32>[M, N]) {
  let row = ctx.block.y * BM
  let column = ctx.block.x * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {
    acc += dot_t(A[row :+ BM, k :+ BK], B[column :+ BN, k :+ BK])
  }
  C[row :+ BM, column :+ BN] = acc
}

@dynshared
@launch(256)
@autotune(BM in [128], BN in [256], BK in [16])
kernel scaled(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], alpha: f32, beta: f32) {
  let row = ctx.block.y * BM
  let column = ctx.block.x * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {
    acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
  }
  C[row :+ BM, column :+ BN] = acc * alpha + C[row :+ BM, column :+ BN] * beta
}

@dynshared
@launch(256)
@autotune(BM in [128], BN in [256], BK in [16])
kernel views(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  let x = ctx.block.x
  var acc: tile<f32>[BM, BN] = 0.0
  for t in range(0, (K + BK - 1) / BK) {
    let at = t * BK
    let left = A[ctx.block.y * BM :+ BM, at :+ BK]
    acc = acc + dot(left, B[at :+ BK, x * BN :+ BN])
  }
  C[ctx.block.y * BM :+ BM, x * BN :+ BN] = acc
}

// C = alpha * A B + beta * C. A block owns one tile of C and walks along K; any M, N and K will do, as what
// runs past an edge reads as 0 and is not stored.
//
// With A counting up in row-major order and B all ones, row i of A B is i K^2 + K (K - 1) / 2 in every column.
//
// run: kernel=gemm M=70 N=50 K=33 A=iota B=ones C=ones alpha=2 beta=3
// expect: C[0, 0] = 1059.0
// expect: C[1, 49] = 3237.0
// expect: C[69, 49] = 151341.0

@launch(256)
@autotune(BM in [64, 128], BN in [64, 128], BK in [16, 32])
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], alpha: f32, beta: f32) {
  let row = ctx.block.x * BM
  let column = ctx.block.y * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {
    acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
  }
  let c_old = C[row :+ BM, column :+ BN]
  C[row :+ BM, column :+ BN] = acc * alpha + c_old * beta
}

// C = alpha * A B + beta * C with a fixed set of blocks: tile v of C stands at row v / nx, column v % nx.
//
// run: kernel=persistent_gemm M=70 N=50 K=33 A=iota B=ones C=ones alpha=2 beta=3 grid=1
// expect: C[0, 0] = 1059.0
// expect: C[69, 49] = 151341.0
// run: kernel=persistent_gemm M=70 N=50 K=33 A=iota B=ones C=ones alpha=2 beta=3 grid=3
// expect: C[1, 49] = 3237.0
// expect: C[69, 0] = 151341.0
@launch(256)
@persistent
@autotune(BM in [32, 64], BN in [32, 64], BK in [16])
kernel persistent_gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], alpha: f32, beta: f32) {
  let nx = (N + BN - 1) / BN
  let ny = (M + BM - 1) / BM
  for v in range(ctx.block.x, nx * ny, ctx.blocks.x) {
    let row = v / nx * BM
    let column = v % nx * BN
    var acc: tile<f32>[BM, BN] = 0.0
    for k in range(0, K, BK) {
      acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
    }
    let c_old = C[row :+ BM, column :+ BN]
    C[row :+ BM, column :+ BN] = acc * alpha + c_old * beta
  }
}

// Split-K without any waiting: one launch leaves the parts in a workspace, the next one adds them up.
//
// run: kernel=split_parts M=40 N=50 K=70 A=ones B=ones WORK=zeros WROWS=256 grid=3
// expect: WORK[0, 0] = 32.0
// expect: WORK[64, 49] = 32.0
// expect: WORK[167, 49] = 6.0
// expect: WORK[192, 0] = 0.0
// run: kernel=split_sum M=40 N=50 WORK=ones WROWS=256 C=zeros grid=5
// expect: C[39, 49] = 4.0
@launch(256)
@persistent
@autotune(BM in [32], BN in [32], BK in [16], SPLITS in [4])
kernel split_parts(A: tensor<f32>[M, K], B: tensor<f32>[K, N], WORK: tensor<f32>[WROWS, N]) {
  let nx = (N + BN - 1) / BN
  let ny = (M + BM - 1) / BM
  let chunk = (K + SPLITS * BK - 1) / (SPLITS * BK) * BK
  for v in range(ctx.block.x, nx * ny * SPLITS, ctx.blocks.x) {
    let part = v / (nx * ny)
    let id = v % (nx * ny)
    let row = id / nx * BM
    let column = id % nx * BN
    var acc: tile<f32>[BM, BN] = 0.0
    for k in range(part * chunk, part * chunk + chunk, BK) {
      acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
    }
    WORK[part * ny * BM + row :+ BM, column :+ BN] = acc
  }
}

@launch(256)
@persistent
@autotune(BM in [32], BN in [32], SPLITS in [4])
kernel split_sum(WORK: tensor<f32>[WROWS, N], C: tensor<f32>[M, N]) {
  let nx = (N + BN - 1) / BN
  let ny = (M + BM - 1) / BM
  for v in range(ctx.block.x, nx * ny, ctx.blocks.x) {
    let row = v / nx * BM
    let column = v % nx * BN
    var sum: tile<f32>[BM, BN] = 0.0
    for s in range(0, SPLITS) {
      sum += WORK[s * ny * BM + row :+ BM, column :+ BN]
    }
    C[row :+ BM, column :+ BN] = sum
  }
}

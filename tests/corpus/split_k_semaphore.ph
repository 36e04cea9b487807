// Split-K: SPLITS work items share one tile of C. Each leaves its part in the workspace and counts itself in at
// the tile's semaphore; whoever finds that all others have been there adds the parts up and sets it back to 0.
// A part of the workspace has ny * BM rows, so ragged tiles of one part do not reach into the next.
//
// run: kernel=split_k M=40 N=50 K=70 A=ones B=ones C=zeros WORK=zeros WROWS=256 SEM=zeros TILES=4 grid=1
// expect: C[39, 49] = 70.0
// run: kernel=split_k M=40 N=50 K=70 A=ones B=ones C=zeros WORK=zeros WROWS=256 SEM=zeros TILES=4 grid=7
// expect: C[0, 0] = 70.0
// expect: C[32, 31] = 70.0
// expect: SEM[3] = 0
@launch(256)
@persistent
@autotune(BM in [32], BN in [32], BK in [16], SPLITS in [4])
kernel split_k(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], WORK: tensor<f32>[WROWS, N],
    SEM: tensor<i32>[TILES]) {
  let nx = (N + BN - 1) / BN
  let ny = (M + BM - 1) / BM
  let chunk = (K + SPLITS * BK - 1) / (SPLITS * BK) * BK
  for v in range(ctx.block.x, nx * ny * SPLITS, ctx.blocks.x) {
    let id = v / SPLITS
    let part = v % SPLITS
    let row = id / nx * BM
    let column = id % nx * BN
    var acc: tile<f32>[BM, BN] = 0.0
    for k in range(part * chunk, part * chunk + chunk, BK) {
      acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
    }
    WORK[part * ny * BM + row :+ BM, column :+ BN] = acc
    let before = atomic_add(SEM, id, 1)
    if before == SPLITS - 1 {
      var sum: tile<f32>[BM, BN] = 0.0
      for s in range(0, SPLITS) {
        sum += WORK[s * ny * BM + row :+ BM, column :+ BN]
      }
      C[row :+ BM, column :+ BN] = sum
      SEM[id] = 0
    }
  }
}

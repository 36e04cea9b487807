// Split-K in turns: the parts of a tile are added to C one after another, each waiting until the turnstile shows
// its own number. Items are numbered so that a part comes right after the one it waits for, and every block
// takes its items in rising order: the lowest unfinished item never waits.
//
// run: kernel=split_k_turns M=40 N=50 K=70 A=ones B=ones C=zeros TURN=zeros TILES=4 grid=1
// expect: C[39, 49] = 70.0
// run: kernel=split_k_turns M=40 N=50 K=70 A=ones B=ones C=ones TURN=zeros TILES=4 grid=6
// expect: C[0, 0] = 70.0
// expect: TURN[0] = 0
@launch(256)
@persistent
@autotune(BM in [32], BN in [32], BK in [16], SPLITS in [3])
kernel split_k_turns(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], TURN: tensor<i32>[TILES]) {
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
    var turn = atomic_add(TURN, id, 0)
    while turn != part {
      turn = atomic_add(TURN, id, 0)
    }
    if part == 0 {
      C[row :+ BM, column :+ BN] = acc
    } else {
      C[row :+ BM, column :+ BN] += acc
    }
    if part == SPLITS - 1 {
      atomic_add(TURN, id, 1 - SPLITS)
    } else {
      atomic_add(TURN, id, 1)
    }
  }
}

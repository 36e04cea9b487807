// Elimination without pivoting: step k takes row k, which no longer changes, off all rows below it.
// A pivot of 0 is passed over.
//
// run: kernel=eliminate N=20 A=ones grid=1
// expect: A[19, 19] = 0.0
// run: kernel=eliminate N=20 A=ones grid=6
// expect: A[0, 19] = 1.0
// expect: A[1, 0] = 0.0
@launch(64)
@persistent
@autotune(TILE in [32])
kernel eliminate(A: tensor<f32>[N, N], BAR: tensor<i32>[2]) {
  for k in range(0, N - 1) {
    for i in range(k + 1 + ctx.block.x, N, ctx.blocks.x) {
      let pivot = A[k, k]
      if pivot != 0.0 {
        let factor = A[i, k] / pivot
        for c in range(0, N, TILE) {
          A[i :+ 1, c :+ TILE] = A[i :+ 1, c :+ TILE] - A[k :+ 1, c :+ TILE] * factor
        }
      }
    }
    grid_barrier(BAR)
  }
}

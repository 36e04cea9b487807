// Relaxation until nothing moves any more, with one flag a round instead of one that is cleared: round r raises
// MOVED[r], and after its barrier every block reads MOVED[r], which no later round touches. MOVED is 0 before.
// Labels sink to the smallest one within reach, one neighbour a round, from one buffer to the other.
//
// run: kernel=settle_labels N=40 A=iota B=zeros MOVED=zeros grid=1
// expect: A[39] = 0.0
// run: kernel=settle_labels N=40 A=iota B=zeros MOVED=zeros grid=4
// expect: A[0] = 0.0
// expect: A[39] = 0.0
// expect: MOVED[38] = 1
// expect: MOVED[39] = 0
@launch(32)
@persistent
@autotune(ROUNDS in [64])
kernel settle_labels(A: tensor<f32>[N], B: tensor<f32>[N], MOVED: tensor<i32>[ROUNDS], BAR: tensor<i32>[2]) {
  for r in range(0, ROUNDS) {
    for i in range(ctx.block.x, N, ctx.blocks.x) {
      let mine = A[i]
      var least = mine
      if i > 0 {
        let left = A[i - 1]
        if left < least {
          least = left
        }
      }
      if least < mine {
        MOVED[r] = 1
      }
      B[i] = least
    }
    grid_barrier(BAR)
    for i in range(ctx.block.x, N, ctx.blocks.x) {
      A[i] = B[i]
    }
    if MOVED[r] == 0 {
      break
    }
    grid_barrier(BAR)
  }
}

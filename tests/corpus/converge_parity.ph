// The same search for a fixed point with one barrier a round: the buffers swap by parity, and while round r + 1
// raises MOVED[r + 1], blocks may still be reading MOVED[r], which nobody changes any more. MOVED is 0 before.
// The last round changes nothing, so both buffers end equal.
//
// run: kernel=sink N=40 A=iota B=zeros MOVED=zeros grid=1
// expect: A[39] = 0.0
// run: kernel=sink N=40 A=iota B=zeros MOVED=zeros grid=4
// expect: A[39] = 0.0
// expect: B[39] = 0.0
// expect: MOVED[38] = 1
// expect: MOVED[39] = 0
@launch(32)
@persistent
@autotune(ROUNDS in [64])
kernel sink(A: tensor<f32>[N], B: tensor<f32>[N], MOVED: tensor<i32>[ROUNDS], BAR: tensor<i32>[2]) {
  for r in range(0, ROUNDS) {
    for i in range(ctx.block.x, N, ctx.blocks.x) {
      var least = 0.0
      var mine = 0.0
      if r % 2 == 0 {
        mine = A[i]
        least = mine
        if i > 0 {
          let left = A[i - 1]
          if left < least {
            least = left
          }
        }
        B[i] = least
      } else {
        mine = B[i]
        least = mine
        if i > 0 {
          let left = B[i - 1]
          if left < least {
            least = left
          }
        }
        A[i] = least
      }
      if least < mine {
        MOVED[r] = 1
      }
    }
    grid_barrier(BAR)
    if MOVED[r] == 0 {
      break
    }
  }
}

// Two stages without a barrier. Every block first makes its tiles of B and raises a flag for each, then, for its
// tiles of C, waits for the flag of the neighbour on the left. Nobody waits before having made everything it
// owes, so the waits end. Flags are 0 before the launch.
//
// run: kernel=neighbours N=700 A=ones B=zeros C=zeros READY=zeros TILES=8 grid=1
// expect: C[0] = 2.0
// expect: C[100] = 4.0
// expect: C[699] = 4.0
// run: kernel=neighbours N=700 A=ones B=zeros C=zeros READY=zeros TILES=8 grid=5
// expect: C[99] = 2.0
// expect: C[100] = 4.0
// expect: C[699] = 4.0
@launch(128)
@persistent
@autotune(TILE in [100])
kernel neighbours(A: tensor<f32>[N], B: tensor<f32>[N], C: tensor<f32>[N], READY: tensor<i32>[TILES]) {
  let count = (N + TILE - 1) / TILE
  for i in range(ctx.block.x, count, ctx.blocks.x) {
    B[i * TILE :+ TILE] = A[i * TILE :+ TILE] * 2.0
    atomic_add(READY, i, 1)
  }
  for i in range(ctx.block.x, count, ctx.blocks.x) {
    if i > 0 {
      while atomic_add(READY, i - 1, 0) == 0 {
      }
    }
    C[i * TILE :+ TILE] = B[i * TILE :+ TILE] + B[i * TILE - TILE :+ TILE]
  }
}

// Count, then turn counts into shares: clear, barrier, count by atomics, barrier, read. X holds bin numbers.
//
// run: kernel=histogram N=1000 X=zeros H=ones SHARE=zeros grid=1
// expect: H[0] = 1000
// expect: SHARE[0] = 1.0
// run: kernel=histogram N=1000 X=ones H=ones SHARE=ones grid=6
// expect: H[0] = 0
// expect: H[1] = 1000
// expect: SHARE[1] = 1.0
// expect: SHARE[63] = 0.0
@launch(128)
@persistent
@autotune(BINS in [64], TILE in [16])
kernel histogram(X: tensor<i32>[N], H: tensor<i32>[BINS], SHARE: tensor<f32>[BINS], BAR: tensor<i32>[2]) {
  for b in range(ctx.block.x * TILE, BINS, ctx.blocks.x * TILE) {
    H[b :+ TILE] = 0
  }
  grid_barrier(BAR)
  for i in range(ctx.block.x, N, ctx.blocks.x) {
    atomic_add(H, X[i], 1)
  }
  grid_barrier(BAR)
  for b in range(ctx.block.x * TILE, BINS, ctx.blocks.x * TILE) {
    SHARE[b :+ TILE] = f32(H[b :+ TILE]) / f32(N)
  }
}

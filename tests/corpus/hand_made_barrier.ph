// A barrier made by hand from two counters, as people wrote it before there was one: the last to arrive clears
// the count and moves the generation on, the others wait for that. The result must not depend on the grid.
//
// run: kernel=by_hand N=1000 X=ones Y=zeros SYNC=zeros grid=1
// expect: Y[0] = 4.0
// run: kernel=by_hand N=1000 X=ones Y=zeros SYNC=zeros grid=4
// expect: Y[255] = 4.0
// expect: Y[999] = 2.0
// expect: SYNC[0] = 0
@launch(128)
@persistent
@autotune(TILE in [256])
kernel by_hand(X: tensor<f32>[N], Y: tensor<f32>[N], SYNC: tensor<i32>[2]) {
  for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
    X[t :+ TILE] = X[t :+ TILE] * 2.0
  }
  let generation = atomic_add(SYNC, 1, 0)
  let before = atomic_add(SYNC, 0, 1)
  if before == ctx.blocks.x - 1 {
    atomic_add(SYNC, 0, 0 - ctx.blocks.x)
    atomic_add(SYNC, 1, 1)
  } else {
    while atomic_add(SYNC, 1, 0) == generation {
    }
  }
  for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
    Y[t :+ TILE] = X[t :+ TILE] + X[t + 1 :+ TILE]
  }
}

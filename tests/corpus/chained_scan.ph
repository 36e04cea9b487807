// The simpler scan: tile i waits until the counter says that all tiles before it are done, takes their sum from
// CARRY and passes its own on. Blocks take tiles in rising order, so the lowest unfinished tile never waits.
//
// run: kernel=chained N=1000 X=ones Y=zeros CARRY=zeros TILES=17 DONE=zeros grid=1
// expect: Y[999, 0] = 1000.0
// run: kernel=chained N=1000 X=ones Y=zeros CARRY=zeros TILES=17 DONE=zeros grid=6
// expect: Y[64, 0] = 65.0
// expect: Y[999, 0] = 1000.0
@launch(128)
@persistent
@autotune(TILE in [64])
kernel chained(X: tensor<f32>[N, 1], Y: tensor<f32>[N, 1], CARRY: tensor<f32>[TILES, 1], DONE: tensor<i32>[1]) {
  let count = (N + TILE - 1) / TILE
  for i in range(ctx.block.x, count, ctx.blocks.x) {
    var inside = cumsum(X[i * TILE :+ TILE, 0 :+ 1])
    var seen = atomic_add(DONE, 0, 0)
    while seen < i {
      seen = atomic_add(DONE, 0, 0)
    }
    let before = CARRY[i, 0]
    CARRY[i + 1, 0] = before + inside[TILE - 1, 0]
    atomic_add(DONE, 0, 1)
    Y[i * TILE :+ TILE, 0 :+ 1] = inside + before
  }
}

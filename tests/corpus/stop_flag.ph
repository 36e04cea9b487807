// Halve everything until some cell is small enough; whoever sees one raises the flag, and several may. All blocks
// read the flag between two barriers, where nobody writes it, so all leave in the same round. STOP is 0 before.
//
// run: kernel=settle N=1000 X=ones STOP=zeros LIMIT=0.1 grid=1
// expect: X[0] = 0.0625
// expect: STOP[0] = 1
// run: kernel=settle N=1000 X=ones STOP=zeros LIMIT=0.1 grid=6
// expect: X[999] = 0.0625
@launch(256)
@persistent
@autotune(TILE in [256], ROUNDS in [20])
kernel settle(X: tensor<f32>[N], STOP: tensor<i32>[1], BAR: tensor<i32>[2], LIMIT: f32) {
  for r in range(0, ROUNDS) {
    for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
      X[t :+ TILE] = X[t :+ TILE] * 0.5
      if X[t] < LIMIT {
        STOP[0] = 1
      }
    }
    grid_barrier(BAR)
    let stop = STOP[0]
    grid_barrier(BAR)
    if stop == 1 {
      break
    }
  }
}

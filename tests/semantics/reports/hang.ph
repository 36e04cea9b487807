// A kernel that hangs, and not at every size: that is what makes it expensive to find.
//
// The barrier stands inside a grid-stride loop. With as many tiles as blocks, every block goes round once and
// all is well. With five tiles and four blocks, block 0 has a second round and waits in it for three blocks
// that have already left. `phobos check` reports the barrier (PH205, barrier-trip-count-varies) and says where
// the number of rounds comes to depend on the block; the reference runtime shows who waits for whom.
//
// To mend it, end the loop before the barrier, or let every block go round equally often.
//
// run: kernel=sweep N=2560 X=zeros grid=4
// expect: fault=deadlock

@launch(256)
@persistent
@autotune(TILE in [512])
kernel sweep(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
    X[t :+ TILE] = X[t :+ TILE] + 1.0
    grid_barrier(BAR)
  }
}

// Breadth-first search level by level on a graph with DEGREE edges a node. A node is claimed by whoever swaps its
// distance from -1, and the round's claims are counted. The search ends for all blocks in the same round.
// DIST is 0 at the sources and -1 everywhere else (in these runs every node is a source).
//
// run: kernel=levels N=30 EDGE=zeros DIST=zeros FOUND=zeros grid=1
// expect: DIST[29] = 0
// run: kernel=levels N=30 EDGE=iota DIST=zeros FOUND=zeros grid=4
// expect: FOUND[0] = 0
@launch(32)
@persistent
@autotune(DEGREE in [1], LEVELS in [64])
kernel levels(EDGE: tensor<i32>[N, DEGREE], DIST: tensor<i32>[N], FOUND: tensor<i32>[LEVELS], BAR: tensor<i32>[2]) {
  for level in range(0, LEVELS) {
    for i in range(ctx.block.x, N, ctx.blocks.x) {
      if atomic_add(DIST, i, 0) == level {
        for e in range(0, DEGREE) {
          let old = atomic_cas(DIST, EDGE[i, e], -1, level + 1)
          if old == -1 {
            atomic_add(FOUND, level, 1)
          }
        }
      }
    }
    grid_barrier(BAR)
    let found = FOUND[level]
    grid_barrier(BAR)
    if found == 0 {
      break
    }
  }
}

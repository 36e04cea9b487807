// The K largest values of a row of at least K, largest first, by all blocks together. Round by round every block offers the
// best cell it owns, all blocks pick the best offer, and the cell's owner strikes it out. Of equal values the
// one whose block comes first goes first, which changes no value of the answer.
//
// run: kernel=top_k N=1000 X=iota BEST=zeros PLACE=zeros OUT=zeros grid=1
// expect: OUT[0] = 999.0
// expect: OUT[3] = 996.0
// run: kernel=top_k N=1000 X=iota BEST=ones PLACE=zeros OUT=zeros grid=5
// expect: OUT[0] = 999.0
// expect: OUT[1] = 998.0
// expect: OUT[3] = 996.0
@launch(128)
@persistent
@autotune(TILE in [128], SLOTS in [1024], K in [4])
kernel top_k(X: tensor<f32>[1, N], BEST: tensor<f32>[SLOTS], PLACE: tensor<i64>[SLOTS], OUT: tensor<f32>[K],
    BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  for r in range(0, K) {
    var best = -3.0e38
    var place = 0
    for t in range(p * TILE, N, ctx.blocks.x * TILE) {
      let x = where(iota(TILE) + t < N, X[0 :+ 1, t :+ TILE], -3.0e38)
      let high = rowmax(x)
      let at = rowargmax(x)
      if high[0, 0] > best {
        best = high[0, 0]
        place = t + at[0, 0]
      }
    }
    BEST[p] = best
    PLACE[p] = place
    grid_barrier(BAR)
    var winner = 0
    for s in range(1, ctx.blocks.x) {
      if BEST[s] > BEST[winner] {
        winner = s
      }
    }
    if p == winner {
      OUT[r] = BEST[p]
      X[0, PLACE[p]] = -3.0e38
    }
    grid_barrier(BAR)
  }
}

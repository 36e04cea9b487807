// Eight stages over one buffer in a single launch.
//
// Every block strides over the tiles of the row it owns, and a grid barrier stands between one stage and the
// next. As separate launches the same work would pay for a launch eight times. Each stage halves the distance
// of a value to 2, so after eight of them x has become 2 + (x - 2) / 256. These stages need nothing of other blocks,
// so `phobos check --severity info` notes that the barrier could go; one that looks at its neighbours would need it.
//
// run: kernel=staged M=1 N=65536 X=iota
// expect: X[0, 0] = 1.9921875
// expect: X[0, 2] = 2.0
// expect: X[0, 258] = 3.0
// expect: X[0, 65282] = 257.0
//
// The same on a length that is not a whole number of tiles, with more blocks than tiles.
// run: kernel=staged M=1 N=1300 X=iota grid=4
// expect: X[0, 1026] = 6.0
// expect: X[0, 1282] = 7.0

@launch(256)
@persistent
@autotune(TILE in [1024, 4096], STAGES in [8])
kernel staged(X: tensor<f32>[M, N], BAR: tensor<i32>[2]) {
  for stage in range(0, STAGES) {
    for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
      X[0 :+ 1, t :+ TILE] = X[0 :+ 1, t :+ TILE] * 0.5 + 1.0
    }
    grid_barrier(BAR)
  }
}

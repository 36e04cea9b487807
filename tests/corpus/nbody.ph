// Bodies on a line that pull each other: positions of step s stand in row s % 2, and every block reads all of
// them. Forces are softened so that a body's own contribution is 0.
//
// run: kernel=nbody N=2 P=zeros V=zeros STEPS=2 grid=1
// expect: P[0, 1] = 0.0
// run: kernel=nbody N=100 P=ones V=ones STEPS=2 grid=3
// expect: P[0, 99] = 1.02
// expect: V[0, 0] = 1.0
@launch(64)
@persistent
@autotune(TILE in [32], DT in [100])
kernel nbody(P: tensor<f32>[2, N], V: tensor<f32>[1, N], BAR: tensor<i32>[2], STEPS: i32) {
  for s in range(0, STEPS) {
    let old = s % 2
    for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
      let mine = transpose(P[old :+ 1, t :+ TILE])
      var pull: tile<f32>[TILE, 1] = 0.0
      for u in range(0, N, TILE) {
        let away = P[old :+ 1, u :+ TILE] - mine
        let far = away * away + 0.01
        pull += rowsum(where(iota(TILE) + u < N, away / (far * sqrt(far)), 0.0))
      }
      V[0 :+ 1, t :+ TILE] += transpose(pull) / f32(DT)
      P[1 - old :+ 1, t :+ TILE] = P[old :+ 1, t :+ TILE] + V[0 :+ 1, t :+ TILE] / f32(DT)
    }
    grid_barrier(BAR)
  }
}

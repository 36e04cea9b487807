// An optimiser step with a clipped gradient: the norm of all gradients first, by all blocks, then momentum and
// weights, tile by tile.
//
// run: kernel=clip N=1600 G=ones V=zeros W=zeros PART=zeros LIMIT=4.0 RATE=0.5 grid=1
// expect: W[0, 0] = -0.05
// run: kernel=clip N=1600 G=ones V=ones W=ones PART=ones LIMIT=4.0 RATE=0.5 grid=5
// expect: V[0, 1599] = 1.0
// expect: W[0, 1599] = 0.5
@launch(256)
@persistent
@autotune(TILE in [256], SLOTS in [2048])
kernel clip(G: tensor<f32>[1, N], V: tensor<f32>[1, N], W: tensor<f32>[1, N], PART: tensor<f32>[1, SLOTS],
    BAR: tensor<i32>[2], LIMIT: f32, RATE: f32) {
  let p = ctx.block.x
  var square: tile<f32>[1, 1] = 0.0
  for t in range(p * TILE, N, ctx.blocks.x * TILE) {
    let g = G[0 :+ 1, t :+ TILE]
    square += rowsum(g * g)
  }
  PART[0 :+ 1, p :+ 1] = square
  grid_barrier(BAR)
  let norm = sqrt(rowsum(where(iota(SLOTS) < ctx.blocks.x, PART[0 :+ 1, 0 :+ SLOTS], 0.0)))
  let scale = LIMIT / tmax(norm, LIMIT)
  for t in range(p * TILE, N, ctx.blocks.x * TILE) {
    V[0 :+ 1, t :+ TILE] = V[0 :+ 1, t :+ TILE] * 0.9 + G[0 :+ 1, t :+ TILE] * scale
    W[0 :+ 1, t :+ TILE] = W[0 :+ 1, t :+ TILE] - V[0 :+ 1, t :+ TILE] * RATE
  }
}

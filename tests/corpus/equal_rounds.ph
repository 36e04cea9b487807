// A barrier in the loop over a block's tiles, made legal: every block goes round equally often, and a round that
// lies past the end stores nothing. After the barrier a block may read the tile before its own, which another
// block has just finished and which no later round touches.
//
// run: kernel=rounds N=2560 X=zeros Y=zeros grid=1
// expect: Y[511] = 1.0
// expect: Y[2559] = 2.0
// run: kernel=rounds N=2560 X=zeros Y=zeros grid=4
// expect: X[0] = 1.0
// expect: Y[0] = 1.0
// expect: Y[512] = 2.0
// expect: Y[2559] = 2.0
@launch(256)
@persistent
@autotune(TILE in [512])
kernel rounds(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  let G = ctx.blocks.x
  let count = (N + G * TILE - 1) / (G * TILE)
  for r in range(0, count) {
    let t = (r * G + p) * TILE
    X[t :+ TILE] = X[t :+ TILE] + 1.0
    grid_barrier(BAR)
    Y[t :+ TILE] = X[t :+ TILE] + X[t - TILE :+ TILE]
  }
}

// A vector divided by its own length, in one launch: partial sums, a barrier, then everybody combines.
//
// Each block has one slot for its part of the sum. After the barrier every block reads the slots that blocks of
// this launch have filled (an older launch may have left something in the others), and scales the tiles it owns.
//
// run: kernel=normalise N=10000 X=ones PART=zeros
// expect: X[0, 0] = 0.01
// expect: X[0, 9999] = 0.01
//
// The slots need no clearing: here they all start as 1.
// run: kernel=normalise N=10000 X=ones PART=ones grid=3
// expect: X[0, 5000] = 0.01
// expect: PART[0, 2] = 3072.0
// expect: PART[0, 3] = 1.0

@launch(256)
@persistent
@autotune(TILE in [1024], SLOTS in [2048])
kernel normalise(X: tensor<f32>[1, N], PART: tensor<f32>[1, SLOTS], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  var sum: tile<f32>[1, 1] = 0.0
  for t in range(p * TILE, N, ctx.blocks.x * TILE) {
    let x = X[0 :+ 1, t :+ TILE]
    sum += rowsum(x * x)
  }
  PART[0 :+ 1, p :+ 1] = sum
  grid_barrier(BAR)
  let total = rowsum(where(iota(SLOTS) < ctx.blocks.x, PART[0 :+ 1, 0 :+ SLOTS], 0.0))
  let length = sqrt(total)
  for t in range(p * TILE, N, ctx.blocks.x * TILE) {
    X[0 :+ 1, t :+ TILE] = X[0 :+ 1, t :+ TILE] / length
  }
}

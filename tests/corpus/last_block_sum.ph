// A sum in one launch without a barrier: every block leaves its part and counts itself in; the one that finds
// all others counted adds the parts up, and sets the counter back to 0.
//
// run: kernel=total N=5000 X=ones PART=zeros COUNT=zeros OUT=zeros grid=1
// expect: OUT[0, 0] = 5000.0
// run: kernel=total N=5000 X=ones PART=ones COUNT=zeros OUT=zeros grid=6
// expect: OUT[0, 0] = 5000.0
// expect: COUNT[0] = 0
@launch(256)
@persistent
@autotune(TILE in [512], SLOTS in [2048])
kernel total(X: tensor<f32>[1, N], PART: tensor<f32>[1, SLOTS], COUNT: tensor<i32>[1], OUT: tensor<f32>[1, 1]) {
  let p = ctx.block.x
  var sum: tile<f32>[1, 1] = 0.0
  for t in range(p * TILE, N, ctx.blocks.x * TILE) {
    sum += rowsum(X[0 :+ 1, t :+ TILE])
  }
  PART[0 :+ 1, p :+ 1] = sum
  let before = atomic_add(COUNT, 0, 1)
  if before == ctx.blocks.x - 1 {
    OUT[0 :+ 1, 0 :+ 1] = rowsum(where(iota(SLOTS) < ctx.blocks.x, PART[0 :+ 1, 0 :+ SLOTS], 0.0))
    COUNT[0] = 0
  }
}

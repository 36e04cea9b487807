// The largest eigenvalue of a symmetric matrix: y = A x by rows, the length of y from slots, x = y / length.
//
// run: kernel=power N=64 A=ones X=ones Y=zeros PART=zeros VALUE=zeros STEPS=3 grid=1
// expect: VALUE[0] = 64.0
// run: kernel=power N=64 A=ones X=ones Y=zeros PART=ones VALUE=zeros STEPS=2 grid=5
// expect: VALUE[0] = 64.0
// expect: X[0, 63] = 0.125
@launch(128)
@persistent
@autotune(TILE in [64], SLOTS in [1024])
kernel power(A: tensor<f32>[N, N], X: tensor<f32>[1, N], Y: tensor<f32>[1, N], PART: tensor<f32>[SLOTS],
    VALUE: tensor<f32>[1], BAR: tensor<i32>[2], STEPS: i32) {
  let p = ctx.block.x
  for s in range(0, STEPS) {
    var square = 0.0
    for i in range(p, N, ctx.blocks.x) {
      var sum: tile<f32>[1, 1] = 0.0
      for t in range(0, N, TILE) {
        sum += rowsum(A[i :+ 1, t :+ TILE] * X[0 :+ 1, t :+ TILE])
      }
      Y[0 :+ 1, i :+ 1] = sum
      square += sum[0, 0] * sum[0, 0]
    }
    PART[p] = square
    grid_barrier(BAR)
    var whole = 0.0
    for b in range(0, ctx.blocks.x) {
      whole += PART[b]
    }
    let length = sqrt(whole)
    for t in range(p * TILE, N, ctx.blocks.x * TILE) {
      X[0 :+ 1, t :+ TILE] = Y[0 :+ 1, t :+ TILE] / length
    }
    if p == 0 {
      VALUE[0] = length
    }
    grid_barrier(BAR)
  }
}

// A softmax over each row, however long the row is: one pass finds the maximum and the denominator together,
// a second one writes. A cell past the end of a row reads as 0, which is no neutral element of a maximum nor of
// a sum of exponentials, so the first pass puts a very small number there.
//
// Row i counts up in steps of 1, so the last cell is (1 - 1/e) and each cell before it 1/e of the next.
//
// run: kernel=softmax M=3 N=1000 X=iota Y=zeros
// expect: Y[0, 999] = 0.63212056
// expect: Y[2, 998] = 0.23254416
// expect: Y[1, 0] = 0.0
//
// run: kernel=softmax M=2 N=8 X=zeros Y=zeros
// expect: Y[1, 7] = 0.125

@launch(256)
@autotune(TILE in [512, 2048])
kernel softmax(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let row = ctx.block.x
  var top: tile<f32>[1, 1] = -3.0e38
  var den: tile<f32>[1, 1] = 0.0
  for t in range(0, N, TILE) {
    let x = where(iota(TILE) + t < N, X[row :+ 1, t :+ TILE], -3.0e38)
    let higher = tmax(top, rowmax(x))
    den = den * exp(top - higher) + rowsum(exp(x - higher))
    top = higher
  }
  for t in range(0, N, TILE) {
    Y[row :+ 1, t :+ TILE] = exp(X[row :+ 1, t :+ TILE] - top) / den
  }
}

// Batch norm over the rows of X in three phases: column sums of the rows a block owns into its own row of
// the workspace, then each column strip combined by one block, then the rows scaled.
//
// run: kernel=batchnorm M=5 C=40 X=iota Y=zeros SUM=zeros SQUARE=zeros STAT=zeros grid=1
// expect: Y[2, 39] = 0.0
// expect: Y[4, 0] = 1.4142135
// run: kernel=batchnorm M=5 C=40 X=iota Y=zeros SUM=ones SQUARE=ones STAT=ones grid=4
// expect: Y[0, 39] = -1.4142135
@launch(256)
@persistent
@autotune(ROWS in [4], COLS in [32], SLOTS in [1024])
kernel batchnorm(X: tensor<f32>[M, C], Y: tensor<f32>[M, C], SUM: tensor<f32>[SLOTS, C], SQUARE: tensor<f32>[SLOTS, C],
    STAT: tensor<f32>[2, C], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  for c in range(0, C, COLS) {
    var sum: tile<f32>[COLS, 1] = 0.0
    var square: tile<f32>[COLS, 1] = 0.0
    for r in range(p * ROWS, M, ctx.blocks.x * ROWS) {
      let down = transpose(X[r :+ ROWS, c :+ COLS])
      sum += rowsum(down)
      square += rowsum(down * down)
    }
    SUM[p :+ 1, c :+ COLS] = transpose(sum)
    SQUARE[p :+ 1, c :+ COLS] = transpose(square)
  }
  grid_barrier(BAR)
  for c in range(p * COLS, C, ctx.blocks.x * COLS) {
    var sum: tile<f32>[1, COLS] = 0.0
    var square: tile<f32>[1, COLS] = 0.0
    for s in range(0, ctx.blocks.x) {
      sum += SUM[s :+ 1, c :+ COLS]
      square += SQUARE[s :+ 1, c :+ COLS]
    }
    let mean = sum / f32(M)
    STAT[0 :+ 1, c :+ COLS] = mean
    STAT[1 :+ 1, c :+ COLS] = 1.0 / sqrt(square / f32(M) - mean * mean + 1e-5)
  }
  grid_barrier(BAR)
  for r in range(p * ROWS, M, ctx.blocks.x * ROWS) {
    for c in range(0, C, COLS) {
      let mean = STAT[0 :+ 1, c :+ COLS]
      let scale = STAT[1 :+ 1, c :+ COLS]
      Y[r :+ ROWS, c :+ COLS] = (X[r :+ ROWS, c :+ COLS] - mean) * scale
    }
  }
}

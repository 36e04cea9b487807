// Three kernels as one launch. `largest` and `mean` both only read X, so nothing orders them: they run side by side
// and share the workers. `spread` reads what either wrote, so a grid barrier stands before it, and only there.
//
//   phobos run examples/fused.ph --plan        the phases, and why the barrier is where it is
//   phobos check --kernel largest+mean+spread examples/fused.ph
//
// run: kernel=largest+mean+spread M=5 N=1000 X=iota TOP=zeros MEAN=zeros Y=zeros
// expect: TOP[4, 0] = 4999.0
// expect: MEAN[1, 0] = 1499.5
// expect: Y[0, 0] = -0.5
// expect: Y[3, 999] = 0.12490622
//
// The same by two workers, each of which takes a run of neighbouring blocks.
// run: kernel=largest+mean+spread M=5 N=1000 X=ones TOP=zeros MEAN=zeros Y=ones grid=2 schedule=persistent-blocked
// expect: Y[4, 999] = 0.0

@autotune(TILE in [256, 1024])
kernel largest(X: tensor<f32>[M, N], TOP: tensor<f32>[M, 1]) {
  let row = ctx.block.x
  var top: tile<f32>[1, 1] = -3.0e38
  for t in range(0, N, TILE) {
    top = tmax(top, rowmax(where(iota(TILE) + t < N, X[row :+ 1, t :+ TILE], -3.0e38)))
  }
  TOP[row :+ 1, 0 :+ 1] = top
}

@autotune(TILE in [256, 1024])
kernel mean(X: tensor<f32>[M, N], MEAN: tensor<f32>[M, 1]) {
  let row = ctx.block.x
  var sum: tile<f32>[1, 1] = 0.0
  for t in range(0, N, TILE) {
    sum += rowsum(X[row :+ 1, t :+ TILE])
  }
  MEAN[row :+ 1, 0 :+ 1] = sum / f32(N)
}

@autotune(TILE in [256, 1024])
kernel spread(X: tensor<f32>[M, N], TOP: tensor<f32>[M, 1], MEAN: tensor<f32>[M, 1], Y: tensor<f32>[M, N]) {
  let row = ctx.block.y
  let t = ctx.block.x * TILE
  Y[row :+ 1, t :+ TILE] = (X[row :+ 1, t :+ TILE] - MEAN[row :+ 1, 0 :+ 1]) / TOP[row :+ 1, 0 :+ 1]
}

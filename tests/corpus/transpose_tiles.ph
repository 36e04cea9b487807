// A transpose by tiles, and back again after a barrier.
//
// run: kernel=there_and_back M=70 N=50 A=iota B=zeros grid=1
// expect: B[49, 69] = 3499.0
// expect: A[69, 0] = 3451.0
// run: kernel=there_and_back M=70 N=50 A=iota B=zeros grid=4
// expect: B[0, 1] = 50.0
// expect: A[0, 49] = 50.0
@launch(128)
@persistent
@autotune(T in [32])
kernel there_and_back(A: tensor<f32>[M, N], B: tensor<f32>[N, M], BAR: tensor<i32>[2]) {
  let nx = (N + T - 1) / T
  let ny = (M + T - 1) / T
  for v in range(ctx.block.x, nx * ny, ctx.blocks.x) {
    B[v % nx * T :+ T, v / nx * T :+ T] = transpose(A[v / nx * T :+ T, v % nx * T :+ T])
  }
  grid_barrier(BAR)
  for v in range(ctx.block.x, nx * ny, ctx.blocks.x) {
    A[v % ny * T :+ T, v / ny * T :+ T] = transpose(B[v / ny * T :+ T, v % ny * T :+ T]) + 1.0
  }
}

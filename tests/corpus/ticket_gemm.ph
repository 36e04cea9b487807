// A dynamic scheduler. Each block draws the number of its next tile from QUEUE[0]; the block that leaves last
// sets both counters back to 0 for the next launch. QUEUE is zero before the first one.
//
// run: kernel=ticket_gemm M=70 N=50 K=33 A=iota B=ones C=zeros QUEUE=zeros grid=1
// expect: C[1, 49] = 1617.0
// expect: QUEUE[0] = 0
// run: kernel=ticket_gemm M=70 N=50 K=33 A=iota B=ones C=zeros QUEUE=zeros grid=6
// expect: C[0, 0] = 528.0
// expect: C[69, 49] = 75669.0
// expect: QUEUE[0] = 0
// expect: QUEUE[1] = 0
@launch(256)
@persistent
@autotune(BM in [32], BN in [32], BK in [16])
kernel ticket_gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], QUEUE: tensor<i32>[2]) {
  let nx = (N + BN - 1) / BN
  let ny = (M + BM - 1) / BM
  var v = i64(atomic_add(QUEUE, 0, 1))
  while v < nx * ny {
    let row = v / nx * BM
    let column = v % nx * BN
    var acc: tile<f32>[BM, BN] = 0.0
    for k in range(0, K, BK) {
      acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
    }
    C[row :+ BM, column :+ BN] = acc
    v = i64(atomic_add(QUEUE, 0, 1))
  }
  let left_before = atomic_add(QUEUE, 1, 1)
  if left_before == ctx.blocks.x - 1 {
    QUEUE[0] = 0
    QUEUE[1] = 0
  }
}

// Stream-K: the multiply-accumulate steps of all tiles form one line, cut into equal pieces. A block that starts
// in the middle of a tile leaves its part in its slot and raises its flag; the block that has the tile's
// beginning waits for those after it and adds their parts. A block publishes before it waits, so the line drains.
// Flags are 0 before the launch, and 0 again after it.
//
// run: kernel=stream_k M=40 N=50 K=70 A=ones B=ones C=zeros PART=zeros FLAG=zeros grid=1
// expect: C[39, 49] = 70.0
// run: kernel=stream_k M=40 N=50 K=70 A=ones B=ones C=zeros PART=zeros FLAG=zeros grid=7
// expect: C[0, 0] = 70.0
// expect: C[39, 49] = 70.0
// expect: FLAG[1] = 0
// run: kernel=stream_k M=20 N=20 K=70 A=ones B=ones C=zeros PART=zeros FLAG=zeros grid=9
// expect: C[19, 19] = 70.0
@launch(256)
@persistent
@autotune(BM in [32], BN in [32], BK in [16], SLOTS in [64], ROWS in [2048])
kernel stream_k(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], PART: tensor<f32>[ROWS, BN],
    FLAG: tensor<i32>[SLOTS]) {
  let p = ctx.block.x
  var workers = ctx.blocks.x
  if workers > SLOTS {
    workers = SLOTS
  }
  let nx = (N + BN - 1) / BN
  let ny = (M + BM - 1) / BM
  let steps = (K + BK - 1) / BK
  let total = nx * ny * steps
  let each = (total + workers - 1) / workers
  var at = p * each
  var end = at + each
  if end > total {
    end = total
  }
  while at < end {
    let id = at / steps
    let first = at % steps
    var last = steps
    if end - id * steps < steps {
      last = end - id * steps
    }
    let row = id / nx * BM
    let column = id % nx * BN
    var acc: tile<f32>[BM, BN] = 0.0
    for k in range(first * BK, last * BK, BK) {
      acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
    }
    if first > 0 {
      PART[p * BM :+ BM, 0 :+ BN] = acc
      atomic_add(FLAG, p, 1)
    } else {
      var done = last
      var q = p + 1
      while done < steps {
        var up = atomic_add(FLAG, q, 0)
        while up == 0 {
          up = atomic_add(FLAG, q, 0)
        }
        acc += PART[q * BM :+ BM, 0 :+ BN]
        atomic_add(FLAG, q, -1)
        done += each
        q += 1
      }
      C[row :+ BM, column :+ BN] = acc
    }
    at = id * steps + last
  }
}

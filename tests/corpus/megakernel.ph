// Four operators of a transformer block in one launch: RMS norm, up projection with its gate, down projection
// with the residual, and the norm of the result. One barrier between each two.
//
// run: kernel=block M=6 D=48 H=32 X=ones S=ones UP=zeros GATE=ones DOWN=ones N1=zeros ACT=zeros OUT=zeros grid=1
// expect: OUT[5, 47] = 0.9999995
// run: kernel=block M=6 D=48 H=32 X=ones S=ones UP=zeros GATE=ones DOWN=ones N1=zeros ACT=ones OUT=zeros grid=5
// expect: X[0, 0] = 1.0
// expect: OUT[0, 0] = 0.9999995
@launch(128)
@persistent
@autotune(TILE in [64], BM in [16], BN in [16], BK in [16])
kernel block(X: tensor<f32>[M, D], S: tensor<f32>[1, D], UP: tensor<f32>[D, H], GATE: tensor<f32>[D, H],
    DOWN: tensor<f32>[H, D], N1: tensor<f32>[M, D], ACT: tensor<f32>[M, H], OUT: tensor<f32>[M, D],
    BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  let G = ctx.blocks.x
  let rows = (M + BM - 1) / BM
  let wide = (H + BN - 1) / BN
  let narrow = (D + BN - 1) / BN
  for r in range(p, M, G) {
    var square: tile<f32>[1, 1] = 0.0
    for c in range(0, D, TILE) {
      let x = X[r :+ 1, c :+ TILE]
      square += rowsum(x * x)
    }
    let scale = 1.0 / sqrt(square / f32(D) + 1e-6)
    for c in range(0, D, TILE) {
      N1[r :+ 1, c :+ TILE] = X[r :+ 1, c :+ TILE] * scale * S[0 :+ 1, c :+ TILE]
    }
  }
  grid_barrier(BAR)
  for v in range(p, rows * wide, G) {
    let i = v / wide * BM
    let j = v % wide * BN
    var up: tile<f32>[BM, BN] = 0.0
    var gate: tile<f32>[BM, BN] = 0.0
    for k in range(0, D, BK) {
      let n = N1[i :+ BM, k :+ BK]
      up += dot(n, UP[k :+ BK, j :+ BN])
      gate += dot(n, GATE[k :+ BK, j :+ BN])
    }
    ACT[i :+ BM, j :+ BN] = up * gate / (1.0 + exp(0.0 - gate))
  }
  grid_barrier(BAR)
  for v in range(p, rows * narrow, G) {
    let i = v / narrow * BM
    let j = v % narrow * BN
    var acc: tile<f32>[BM, BN] = X[i :+ BM, j :+ BN]
    for k in range(0, H, BK) {
      acc += dot(ACT[i :+ BM, k :+ BK], DOWN[k :+ BK, j :+ BN])
    }
    X[i :+ BM, j :+ BN] = acc
  }
  grid_barrier(BAR)
  for r in range(p, M, G) {
    var square: tile<f32>[1, 1] = 0.0
    for c in range(0, D, TILE) {
      let x = X[r :+ 1, c :+ TILE]
      square += rowsum(x * x)
    }
    let scale = 1.0 / sqrt(square / f32(D) + 1e-6)
    for c in range(0, D, TILE) {
      OUT[r :+ 1, c :+ TILE] = X[r :+ 1, c :+ TILE] * scale * S[0 :+ 1, c :+ TILE]
    }
  }
}

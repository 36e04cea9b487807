// Conjugate gradient for (A + 4 I) with A the three-point stencil -1 2 -1, a fixed number of steps. Every inner
// product is parts in slots, a barrier, and the same sum computed by everybody.
//
// run: kernel=cg N=300 B=zeros X=zeros R=zeros P=zeros Q=zeros PQ=zeros RR=zeros grid=1
// expect: X[0, 150] = 0.0
// run: kernel=cg N=300 B=ones X=zeros R=ones P=zeros Q=zeros PQ=zeros RR=zeros grid=3
// expect: X[0, 150] = 0.25
@launch(128)
@persistent
@autotune(TILE in [128], SLOTS in [1024], STEPS in [20])
kernel cg(B: tensor<f32>[1, N], X: tensor<f32>[1, N], R: tensor<f32>[1, N], P: tensor<f32>[1, N], Q: tensor<f32>[1, N],
    PQ: tensor<f32>[1, SLOTS], RR: tensor<f32>[1, SLOTS], BAR: tensor<i32>[2]) {
  let me = ctx.block.x
  let filled = iota(SLOTS) < ctx.blocks.x
  var part: tile<f32>[1, 1] = 0.0
  for t in range(me * TILE, N, ctx.blocks.x * TILE) {
    let b = B[0 :+ 1, t :+ TILE]
    X[0 :+ 1, t :+ TILE] = 0.0
    R[0 :+ 1, t :+ TILE] = b
    P[0 :+ 1, t :+ TILE] = b
    part += rowsum(b * b)
  }
  RR[0 :+ 1, me :+ 1] = part
  grid_barrier(BAR)
  var rr = rowsum(where(filled, RR[0 :+ 1, 0 :+ SLOTS], 0.0))
  for s in range(0, STEPS) {
    part = 0.0
    for t in range(me * TILE, N, ctx.blocks.x * TILE) {
      let p = P[0 :+ 1, t :+ TILE]
      let q = p * 6.0 - P[0 :+ 1, t - 1 :+ TILE] - P[0 :+ 1, t + 1 :+ TILE]
      Q[0 :+ 1, t :+ TILE] = q
      part += rowsum(p * q)
    }
    PQ[0 :+ 1, me :+ 1] = part
    grid_barrier(BAR)
    let pq = rowsum(where(filled, PQ[0 :+ 1, 0 :+ SLOTS], 0.0))
    let alpha = rr / tmax(pq, 1.0e-30)
    part = 0.0
    for t in range(me * TILE, N, ctx.blocks.x * TILE) {
      X[0 :+ 1, t :+ TILE] += P[0 :+ 1, t :+ TILE] * alpha
      R[0 :+ 1, t :+ TILE] = R[0 :+ 1, t :+ TILE] - Q[0 :+ 1, t :+ TILE] * alpha
      let r = R[0 :+ 1, t :+ TILE]
      part += rowsum(r * r)
    }
    RR[0 :+ 1, me :+ 1] = part
    grid_barrier(BAR)
    let rr_new = rowsum(where(filled, RR[0 :+ 1, 0 :+ SLOTS], 0.0))
    let beta = rr_new / tmax(rr, 1.0e-30)
    for t in range(me * TILE, N, ctx.blocks.x * TILE) {
      P[0 :+ 1, t :+ TILE] = R[0 :+ 1, t :+ TILE] + P[0 :+ 1, t :+ TILE] * beta
    }
    rr = rr_new
    grid_barrier(BAR)
  }
}

// One matrix product an expert over a batch sorted by expert: rows FIRST[e] .. FIRST[e + 1] belong to expert e,
// and the tiles of all experts form one list that the blocks stride over. A row that an expert's last tile
// shares with the next expert is left to the next one.
//
// run: kernel=experts M=40 K=20 KE=60 N=32 X=ones W=ones FIRST=zeros Y=zeros COUNT=0 grid=2
// expect: Y[39, 31] = 0.0
// run: kernel=experts M=3 K=20 KE=60 N=32 X=ones W=ones FIRST=iota Y=zeros COUNT=3 grid=1
// expect: Y[0, 0] = 20.0
// expect: Y[2, 31] = 20.0
// run: kernel=experts M=3 K=20 KE=60 N=32 X=ones W=ones FIRST=iota Y=zeros COUNT=3 grid=5
// expect: Y[1, 31] = 20.0
@launch(128)
@persistent
@autotune(BM in [16], BN in [16], BK in [16], EXPERTS in [4])
kernel experts(X: tensor<f32>[M, K], W: tensor<f32>[KE, N], FIRST: tensor<i32>[EXPERTS], Y: tensor<f32>[M, N],
    COUNT: i32) {
  let nx = (N + BN - 1) / BN
  var before = 0
  for e in range(0, COUNT) {
    let first = FIRST[e]
    let end = FIRST[e + 1]
    let tiles = (end - first + BM - 1) / BM * nx
    var v = ctx.block.x
    if before > v {
      v += (before - v + ctx.blocks.x - 1) / ctx.blocks.x * ctx.blocks.x
    }
    while v < before + tiles {
      let row = first + (v - before) / nx * BM
      let column = (v - before) % nx * BN
      var acc: tile<f32>[BM, BN] = 0.0
      for k in range(0, K, BK) {
        let w = where(transpose(iota(BK)) + k < K, W[e * K + k :+ BK, column :+ BN], 0.0)
        acc += dot(X[row :+ BM, k :+ BK], w)
      }
      for i in range(0, BM) {
        if row + i < end {
          Y[row + i :+ 1, column :+ BN] = acc[i :+ 1, 0 :+ BN]
        }
      }
      v += ctx.blocks.x
    }
    before += tiles
  }
}

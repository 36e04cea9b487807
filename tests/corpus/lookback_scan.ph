// Inclusive prefix sum in one pass with decoupled look-back. Tiles are handed out by a ticket, so a tile's
// predecessors always belong to blocks that run. STATE of a tile: 0 nothing yet, 1 its own sum stands in SUM,
// 2 the sum of everything up to its end stands in UPTO. A tile walks back over ones until it meets a two.
// STATE and NEXT are zero before the launch.
//
// run: kernel=lookback N=1000 X=ones Y=zeros SUM=zeros UPTO=zeros TILES=16 STATE=zeros NEXT=zeros grid=1
// expect: Y[999, 0] = 1000.0
// run: kernel=lookback N=1000 X=ones Y=zeros SUM=zeros UPTO=zeros TILES=16 STATE=zeros NEXT=zeros grid=5
// expect: Y[0, 0] = 1.0
// expect: Y[64, 0] = 65.0
// expect: Y[999, 0] = 1000.0
@launch(128)
@persistent
@autotune(TILE in [64])
kernel lookback(X: tensor<f32>[N, 1], Y: tensor<f32>[N, 1], SUM: tensor<f32>[TILES, 1], UPTO: tensor<f32>[TILES, 1],
    STATE: tensor<i32>[TILES], NEXT: tensor<i32>[1]) {
  var i = i64(atomic_add(NEXT, 0, 1))
  while i * TILE < N {
    var inside = cumsum(X[i * TILE :+ TILE, 0 :+ 1])
    let mine = inside[TILE - 1, 0]
    var before = 0.0
    if i > 0 {
      SUM[i, 0] = mine
      atomic_add(STATE, i, 1)
      var back = i - 1
      var open = true
      while open {
        let state = atomic_add(STATE, back, 0)
        if state == 2 {
          before += UPTO[back, 0]
          open = false
        } else if state == 1 {
          before += SUM[back, 0]
          back -= 1
        }
      }
      UPTO[i, 0] = before + mine
      atomic_add(STATE, i, 1)
    } else {
      UPTO[i, 0] = mine
      atomic_add(STATE, i, 2)
    }
    Y[i * TILE :+ TILE, 0 :+ 1] = inside + before
    i = i64(atomic_add(NEXT, 0, 1))
  }
}

// k-means on numbers: each block sums the points of each cluster into its own row, then every block computes all
// new centres for itself from all rows. CENTRE is written by block 0 alone, once everybody has read it.
//
// run: kernel=kmeans N=100 X=ones CENTRE=iota SUM=zeros COUNT=zeros STEPS=2 grid=1
// expect: CENTRE[1] = 1.0
// run: kernel=kmeans N=100 X=iota CENTRE=iota SUM=ones COUNT=ones STEPS=1 grid=4
// expect: CENTRE[0] = 0.0
// expect: CENTRE[3] = 51.0
@launch(64)
@persistent
@autotune(KINDS in [4], SLOTS in [512])
kernel kmeans(X: tensor<f32>[N], CENTRE: tensor<f32>[KINDS], SUM: tensor<f32>[SLOTS, KINDS],
    COUNT: tensor<i32>[SLOTS, KINDS], BAR: tensor<i32>[2], STEPS: i32) {
  let p = ctx.block.x
  for s in range(0, STEPS) {
    var sums: tile<f32>[1, KINDS] = 0.0
    var counts: tile<i32>[1, KINDS] = 0
    for i in range(p, N, ctx.blocks.x) {
      let x = X[i]
      var nearest = 0
      var least = (x - CENTRE[0]) * (x - CENTRE[0])
      for c in range(1, KINDS) {
        let square = (x - CENTRE[c]) * (x - CENTRE[c])
        if square < least {
          least = square
          nearest = c
        }
      }
      sums[0, nearest] = sums[0, nearest] + x
      counts[0, nearest] = counts[0, nearest] + 1
    }
    SUM[p :+ 1, 0 :+ KINDS] = sums
    COUNT[p :+ 1, 0 :+ KINDS] = counts
    grid_barrier(BAR)
    if p == 0 {
      for c in range(0, KINDS) {
        var sum = 0.0
        var count = 0
        for b in range(0, ctx.blocks.x) {
          sum += SUM[b, c]
          count += COUNT[b, c]
        }
        if count > 0 {
          CENTRE[c] = sum / f32(count)
        }
      }
    }
    grid_barrier(BAR)
  }
}

// The length of the longest common subsequence of two rows of letters, one anti-diagonal at a time. Three rows
// of D take turns: diagonal d is row d % 3, cell i of it belongs to the pair (i, d - i).
//
// run: kernel=common N=12 M=9 A=ones B=ones D=zeros W=13 OUT=zeros grid=1
// expect: OUT[0] = 9
// run: kernel=common N=12 M=9 A=ones B=zeros D=zeros W=13 OUT=ones grid=4
// expect: OUT[0] = 0
// run: kernel=common N=6 M=8 A=iota B=iota D=zeros W=7 OUT=zeros grid=3
// expect: OUT[0] = 6
@launch(32)
@persistent
kernel common(A: tensor<i32>[N], B: tensor<i32>[M], D: tensor<i32>[3, W], OUT: tensor<i32>[1], BAR: tensor<i32>[2]) {
  for d in range(0, N + M + 1) {
    let row = d % 3
    let one = (d + 2) % 3
    let two = (d + 1) % 3
    for i in range(ctx.block.x, N + 1, ctx.blocks.x) {
      let j = d - i
      if j >= 0 && j <= M {
        var best = 0
        if i > 0 && j > 0 {
          if A[i - 1] == B[j - 1] {
            best = D[two, i - 1] + 1
          } else {
            best = D[one, i]
            if D[one, i - 1] > best {
              best = D[one, i - 1]
            }
          }
        }
        D[row, i] = best
      }
    }
    grid_barrier(BAR)
  }
  if ctx.block.x == 0 {
    OUT[0] = D[(N + M) % 3, N]
  }
}

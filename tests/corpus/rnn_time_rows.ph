// A recurrent layer over a whole sequence in one launch: row s + 1 of H comes from row s, all blocks share the
// columns, and a barrier stands between two moments in time. Row 0 of H is the initial state.
//
// run: kernel=rnn STEPS=3 ROWS=4 D=70 X=zeros W=zeros H=ones grid=1
// expect: H[3, 69] = 0.0
// run: kernel=rnn STEPS=3 ROWS=4 D=70 X=ones W=zeros H=zeros grid=3
// expect: H[0, 69] = 0.0
// expect: H[1, 0] = 0.76159416
// expect: H[3, 69] = 0.76159416
@launch(256)
@persistent
@autotune(COLS in [32], DEPTH in [32])
kernel rnn(X: tensor<f32>[STEPS, D], W: tensor<f32>[D, D], H: tensor<f32>[ROWS, D], BAR: tensor<i32>[2]) {
  for s in range(0, STEPS) {
    for c in range(ctx.block.x * COLS, D, ctx.blocks.x * COLS) {
      var acc: tile<f32>[1, COLS] = X[s :+ 1, c :+ COLS]
      for k in range(0, D, DEPTH) {
        acc += dot(H[s :+ 1, k :+ DEPTH], W[k :+ DEPTH, c :+ COLS])
      }
      H[s + 1 :+ 1, c :+ COLS] = tanh(acc)
    }
    grid_barrier(BAR)
  }
}

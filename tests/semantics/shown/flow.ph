// Views, tiles without a value, loops, branches and ways out; a comment that assumes.
@launch(128, 2)
@persistent
@aligned(N = 64)
kernel flow(X: tensor<f32>[N], BAR: tensor<i32>[2], rounds: i32) {
  let p = ctx.block.x
  let v = X[p * 64 :+ 64]
  var t: tile<f32>[64]
  // phobos: assume uniform(rounds)
  for<unroll 2> r in range(0, rounds, 2) {
    if r == 4 {
      continue
    } else if r > 8 {
      break
    } else {
      t = v
    }
    grid_barrier(BAR)
  }
  if p > 3 {
    return
  }
  t[0] = flat_unknown(X) + ctx.lane
  X[p * 64 : p * 64 + 64] = exp(-t)
  -p
}

// Effects are statements in the order of evaluation; what was read before one is kept.
fn next(C: tensor<i32>[n], at: i32) -> i64 {
  return i64(atomic_add(C, at, 1))
}
fn first(a: i32, b: i32) -> i32 {
  if a < b {
    return a
  }
  return b
}
kernel effects(X: tensor<f32>[N], C: tensor<i32>[4], n: i32) {
  var i = n
  let sum = i + next(C, 0) + next(C, 1)
  X[i + sum] += X[0] + f32(atomic_add(C, 2, i32(i)))
  X[i] = f32(next(C, 3))
  if n > 3 && next(C, 0) > 4 || n < 0 {
    i = first(i, n)
  }
  while atomic_cas(C, 0, 0, 1) != 0 {
    i += 1
  }
  for j in range(i, next(C, 0), n) {
    atomic_add(C, 1, 1)
  }
  let t = X[0 :+ 4] * f32(atomic_add(C, 1, 1))
  X[0 :+ 4] = t
}

// Integer parameters and results of functions: what wraps, and what keeps its kind.
fn wide(i: i64, j: i32) -> i64 {
  return i + j
}
fn narrow(i: u8) -> i8 {
  return i
}
fn ticket(C: tensor<i32>[n], by: i32) -> i32 {
  return atomic_add(C, 0, by)
}
kernel kinds(I: tensor<i32>[N], C: tensor<i32>[4], n: i32) {
  I[0] = wide(n, N)
  I[1] = narrow(n)
  I[2] = ticket(C, i32(n)) + 1
}

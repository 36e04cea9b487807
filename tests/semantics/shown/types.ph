// Conversions that nobody wrote, and those that somebody did.
@autotune(T in [8, 32])
kernel types(X: tensor<f32>[N], H: tensor<f16>[N], A: tensor<f16>[64, 64], I: tensor<i32>[N], n: i32, d: f64) {
  var t: tile<f16>[T] = 1
  t = X[0 :+ T]
  t += X[0 :+ T]
  t *= 2.0
  t = H[0 :+ T] + X[0 :+ T]
  X[0 :+ T] = t
  var acc: tile<f32>[64, 64] = 0.0
  acc += dot(A[:, :], A[:, :])
  acc = acc + dot_t(A[:, :], A[:, :])
  let c: tile<f32>[64, 64] = dot(A[:, :], A[:, :])
  A[:, :] = acc + c
  var s = d
  s += X[0]
  X[1] = s
  let k: i32 = n * 2
  var small: u8 = 300
  small += k
  I[small] = k
  I[0] += 1
  I[0] /= 2
  I[1] = i32(n) + 1
  let r = i32(n) < k
  if r {
    X[2] = f32(n)
  }
  X[0 : N] = where(X[:] > 0.0, X[:], 0.0)
}

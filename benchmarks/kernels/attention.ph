// O = softmax(Q K^T scale) V, for as many heads as there are stretches of `length` rows. A block owns BM rows of one
// head, so `length` is a multiple of BM and of BN; it walks along the head's keys and values once, with the largest
// score so far (`scale` is not negative), the sum of the weights and the weighted sum of values as they stand.

@tensorcore
@pipeline
@dynshared
@launch(256)
@autotune(D in [64, 128], BM in [128], BN in [128])
kernel attention(Q: tensor<f16>[R, D], K: tensor<f16>[R, D], V: tensor<f16>[R, D], O: tensor<f16>[R, D], length: i64,
    scale: f32) {
  let row = ctx.block.x * BM
  let first = row / length * length
  let q = Q[row :+ BM, 0 :+ D]
  var top: tile<f32>[BM, 1] = -3.0e38
  var total: tile<f32>[BM, 1] = 0.0
  var acc: tile<f32>[BM, D] = 0.0
  for t in range(first, first + length, BN) {
    var s: tile<f32>[BM, BN] = dot_t(q, K[t :+ BN, 0 :+ D])
    let higher = tmax(top, rowmax(s) * scale)
    let p = exp(s * scale - higher)
    let shrink = exp(top - higher)
    total = total * shrink + rowsum(p)
    acc = acc * shrink + dot(p, V[t :+ BN, 0 :+ D])
    top = higher
  }
  O[row :+ BM, 0 :+ D] = acc / total
}

"""Whole kernels at random shapes, ragged extents and random constants, against float64."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.support import run

GEMM = """
@autotune(BM in [4, 8], BN in [4, 16], BK in [3, 8])
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], alpha: f32) {
  let row = ctx.block.x * BM
  let column = ctx.block.y * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {
    acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
  }
  let old = C[row :+ BM, column :+ BN]
  C[row :+ BM, column :+ BN] = acc * alpha + old
}
"""

few = settings(max_examples=30)
extent = st.integers(1, 40)


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@given(
    m=extent,
    n=extent,
    k=extent,
    bm=st.sampled_from([4, 8, 5]),
    bn=st.sampled_from([4, 16]),
    bk=st.sampled_from([1, 3, 8]),
)
@few
def test_products_of_ragged_matrices(m: int, n: int, k: int, bm: int, bn: int, bk: int) -> None:
    a, b, c = drawn(1, m, k), drawn(2, k, n), drawn(3, m, n)
    got = run(GEMM, a, b, c, 0.5, constants={"BM": bm, "BN": bn, "BK": bk}, detect="races")[2]
    wanted = 0.5 * (a.astype(np.float64) @ b.astype(np.float64)) + c
    assert np.abs(got - wanted).max() <= 1e-5 * (1 + np.abs(a).astype(np.float64) @ np.abs(b)).max()


SOFTMAX = """
@persistent
@autotune(TILE in [8])
kernel softmax(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  for row in range(ctx.block.x, M, ctx.blocks.x) {
    var top: tile<f32>[1, 1] = -3.0e38
    var den: tile<f32>[1, 1] = 0.0
    for t in range(0, N, TILE) {
      let x = where(iota(TILE) + t < N, X[row :+ 1, t :+ TILE], -3.0e38)
      let higher = tmax(top, rowmax(x))
      den = den * exp(top - higher) + rowsum(exp(x - higher))
      top = higher
    }
    for t in range(0, N, TILE) {
      Y[row :+ 1, t :+ TILE] = exp(X[row :+ 1, t :+ TILE] - top) / den
    }
  }
}
"""


@given(m=st.integers(1, 12), n=extent, tile=st.sampled_from([1, 5, 8, 64]), grid=st.integers(1, 6))
@few
def test_softmax_over_ragged_rows_by_any_grid(m: int, n: int, tile: int, grid: int) -> None:
    x = drawn(4, m, n) * 10
    got = run(SOFTMAX, x, x * 0, constants={"TILE": tile}, grid=grid, detect="races")[1]
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert np.allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


HISTOGRAM = """
@persistent
kernel histogram(X: tensor<i32>[N], H: tensor<i32>[B], Y: tensor<f32>[B], BAR: tensor<i32>[2]) {
  for i in range(ctx.block.x, B, ctx.blocks.x) { H[i] = 0 }
  grid_barrier(BAR)
  for i in range(ctx.block.x, N, ctx.blocks.x) { atomic_add(H, X[i], 1) }
  grid_barrier(BAR)
  for i in range(ctx.block.x, B, ctx.blocks.x) { Y[i] = f32(H[i]) / f32(N) }
}
"""


@given(n=st.integers(1, 60), bins=st.integers(1, 7), grid=st.integers(1, 5), seed=st.integers(0, 9))
@few
def test_a_histogram_by_atomics_between_barriers(n: int, bins: int, grid: int, seed: int) -> None:
    x = np.random.default_rng(seed).integers(0, bins, n).astype(np.int32)
    h, y = np.full(bins, 7, np.int32), np.zeros(bins, np.float32)
    for detect in ("", "races"):
        got = run(HISTOGRAM, x, h, y, grid=grid, detect=detect)
        counts = np.bincount(x, minlength=bins)
        assert np.array_equal(got[1], counts) and np.array_equal(got[2], counts.astype(np.float32) / np.float32(n))


SCAN = """
@persistent
@autotune(TILE in [4])
kernel scan(X: tensor<f32>[N, 1], S: tensor<f32>[M, 1], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x, M, ctx.blocks.x) {
    let c = cumsum(X[t * TILE :+ TILE, 0 :+ 1])
    X[t * TILE :+ TILE, 0 :+ 1] = c
    var own = c
    S[t, 0] = own[TILE - 1, 0]
  }
  grid_barrier(BAR)
  for t in range(ctx.block.x, M, ctx.blocks.x) {
    var before = 0.0
    for u in range(0, t) { before += S[u, 0] }
    X[t * TILE :+ TILE, 0 :+ 1] = X[t * TILE :+ TILE, 0 :+ 1] + before
  }
}
"""


@given(n=st.integers(1, 50), tile=st.sampled_from([1, 4, 7]), grid=st.integers(1, 5))
@few
def test_a_scan_in_two_phases(n: int, tile: int, grid: int) -> None:
    x = np.random.default_rng(n).integers(-9, 9, (n, 1)).astype(np.float32)
    parts = np.zeros((-(-n // tile), 1), np.float32)
    got = run(SCAN, x, parts, constants={"TILE": tile}, grid=grid, detect="races")[0]
    assert np.array_equal(got, np.cumsum(x, 0))

"""Every built-in against NumPy in float64 (or exact integers), through both paths of the reference runtime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.support import BF16, DTYPES, run

R = np.random.default_rng(3)


def tile(rows: int = 8, columns: int = 16, dtype: str = "f32") -> np.ndarray:
    return R.standard_normal((rows, columns)).astype(DTYPES[dtype])


def unary(expression: str, dtype: str = "f32", shape: str = "8, 16") -> str:
    return f"""
kernel k(X: tensor<{dtype}>[M, 16], Y: tensor<{dtype}>[M, 16]) {{
  let r = ctx.block.x * 8
  let t = X[r :+ 8, 0 :+ 16]
  Y[r :+ 8, 0 :+ 16] = {expression}
}}
"""


ULP = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 4 * 2.0**-23, "f64": 4 * 2.0**-52}


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize(
    ("name", "truth"), [("exp", np.exp), ("log", np.log), ("sqrt", np.sqrt), ("tanh", np.tanh), ("round", np.rint)]
)
def test_a_float_function_is_correct_to_the_last_places(name: str, truth: object, dtype: str) -> None:
    x = np.abs(tile(24, 16, dtype)) + DTYPES[dtype](0.25)
    y = run(unary(f"{name}(t)", dtype), x, np.zeros_like(x))[1]
    wanted = truth(x.astype(np.float64))  # type: ignore[operator]
    assert np.all(np.abs(y.astype(np.float64) - wanted) <= ULP[dtype] * np.maximum(np.abs(wanted), 1e-3))


def test_round_takes_ties_to_even() -> None:
    x = np.resize(np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 3.0, -2.5], np.float32), (8, 16))
    y = run(unary("round(t)"), x, np.zeros_like(x))[1]
    assert y[0, :8].tolist() == [0.0, 2.0, 2.0, 0.0, -2.0, 0.0, 3.0, -2.0]


def test_pow_by_scalar_and_by_tile() -> None:
    x = np.abs(tile(16)) + 0.5
    assert np.allclose(run(unary("pow(t, 3.0)"), x, x * 0)[1], x.astype(np.float64) ** 3, rtol=1e-6)
    assert np.allclose(run(unary("pow(t, t)"), x, x * 0)[1], x.astype(np.float64) ** x, rtol=1e-6)


def test_scalar_math() -> None:
    text = """
kernel k(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p] = exp(X[p]) + sqrt(X[p]) * tanh(X[p]) - pow(X[p], 2.0) + round(X[p]) + log(X[p])
}
"""
    x = np.abs(R.standard_normal(7)).astype(np.float32) + 0.1
    d = x.astype(np.float64)
    wanted = np.exp(d) + np.sqrt(d) * np.tanh(d) - d**2 + np.rint(d) + np.log(d)
    assert np.allclose(run(text, x), wanted, rtol=1e-5)


def test_tmax_is_the_ternary_and_so_is_its_nan() -> None:
    a = np.array([[1.0, np.nan, 2.0, 5.0]], np.float32)
    b = np.array([[3.0, 4.0, np.nan, -1.0]], np.float32)
    text = """
kernel k(A: tensor<f32>[1, 4], B: tensor<f32>[1, 4], Y: tensor<f32>[2, 4]) {
  Y[0 :+ 1, :] = tmax(A[:, :], B[:, :])
  Y[1 :+ 1, :] = tmin(A[:, :], B[:, :])
}
"""
    y = run(text, a, b, np.zeros((2, 4), np.float32))[2]
    assert np.array_equal(y, np.stack([np.where(a > b, a, b)[0], np.where(a < b, a, b)[0]]), equal_nan=True)
    assert y[0, 1] == 4.0 and np.isnan(y[0, 2])


def test_comparisons_with_nan_are_false_but_for_unequal() -> None:
    x = np.array([np.nan, 1.0], np.float32)
    text = """
kernel k(X: tensor<f32>[2], Y: tensor<i32>[6]) {
  let n = X[0]
  if n < 1.0 { Y[0] = 1 }
  if n == n { Y[1] = 1 }
  if n != n { Y[2] = 1 }
  if n >= 1.0 { Y[3] = 1 }
  if !(n < 1.0) { Y[4] = 1 }
  if X[1] == 1.0 { Y[5] = 1 }
}
"""
    assert run(text, x, np.zeros(6, np.int32))[1].tolist() == [0, 0, 1, 0, 1, 1]


def test_where_on_tiles_and_scalars() -> None:
    x = tile(16)
    assert np.array_equal(run(unary("where(t > 0.0, t, 0.0)"), x, x * 0)[1], np.where(x > 0, x, np.float32(0)))
    text = """
kernel k(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p] = where(p < 2, X[p], -X[p])
}
"""
    assert run(text, np.arange(5, dtype=np.float32)).tolist() == [0, 1, -2, -3, -4]


def test_where_under_a_uniform_condition_broadcasts() -> None:
    x = tile(16)
    y = run(unary("where(ctx.blocks.x == 2, 1.0, t)"), x, x * 0)[1]
    assert (y == 1.0).all()


def test_iota_is_a_row_of_indices() -> None:
    text = """
kernel k(Y: tensor<i32>[M, 8]) {
  let p = ctx.block.x
  Y[p :+ 1, 0 :+ 8] = iota(8) * 10 + p
}
"""
    assert np.array_equal(run(text, np.zeros((3, 8), np.int32)), np.arange(8) * 10 + np.arange(3)[:, None])


def test_iota_may_be_changed_in_a_var() -> None:
    text = """
kernel k(Y: tensor<i32>[1, 8]) {
  var c = iota(8)
  c += 1
  Y[:, :] = c + iota(8)
}
"""
    assert run(text, np.zeros((1, 8), np.int32)).tolist() == [[2 * n + 1 for n in range(8)]]


def test_argsel_takes_the_first_where_equal() -> None:
    text = """
kernel k(A: tensor<f32>[1, 4], B: tensor<f32>[1, 4], I: tensor<i32>[1, 4], J: tensor<i32>[1, 4]) {
  I[:, :] = argsel(A[:, :], B[:, :], I[:, :], J[:, :])
}
"""
    a, b = np.array([[1, 2, 3, 4]], np.float32), np.array([[1, 5, 0, 9]], np.float32)
    i, j = np.arange(4, dtype=np.int32)[None], -np.arange(4, dtype=np.int32)[None] - 1
    assert run(text, a, b, i, j)[2].tolist() == [[0, -2, 2, -4]]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_row_reductions(dtype: str) -> None:
    text = f"""
kernel k(X: tensor<{dtype}>[M, 64], S: tensor<{dtype}>[M, 1], T: tensor<{dtype}>[M, 1]) {{
  let r = ctx.block.x * 4
  S[r :+ 4, 0 :+ 1] = rowsum(X[r :+ 4, 0 :+ 64])
  T[r :+ 4, 0 :+ 1] = rowmax(X[r :+ 4, 0 :+ 64])
}}
"""
    x = tile(12, 64, dtype)
    zero = np.zeros((12, 1), DTYPES[dtype])
    _, s, t = run(text, x, zero, zero.copy())
    d = x.astype(np.float64)
    bound = ULP[dtype] * np.abs(d).sum(1, keepdims=True)
    assert np.all(np.abs(s.astype(np.float64) - d.sum(1, keepdims=True)) <= bound)
    assert np.array_equal(t, x.astype(np.float64).max(1, keepdims=True).astype(DTYPES[dtype]))


def test_a_half_sum_is_not_rounded_at_every_term() -> None:
    text = """
kernel k(X: tensor<f16>[1, 4096], S: tensor<f16>[1, 1]) {
  S[:, :] = rowsum(X[0 :+ 1, 0 :+ 4096])
}
"""
    assert run(text, np.ones((1, 4096), np.float16), np.zeros((1, 1), np.float16))[1][0, 0] == 4096


def test_rowargmax_gives_the_first_of_equal_ones() -> None:
    text = """
kernel k(X: tensor<f32>[M, 8], Y: tensor<i32>[M, 1]) {
  let r = ctx.block.x
  Y[r :+ 1, 0 :+ 1] = rowargmax(X[r :+ 1, 0 :+ 8])
}
"""
    x = np.array([[1, 3, 3, 0, 0, 0, 0, 2], [0] * 8, [-1] * 7 + [5]], np.float32)
    assert run(text, x, np.zeros((3, 1), np.int32))[1].reshape(-1).tolist() == [1, 0, 7]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_cumsum_runs_down_the_rows_and_tril_keeps_the_lower_triangle(dtype: str) -> None:
    x = tile(16, 16, dtype)
    ours = run(unary("cumsum(t)", dtype), x, x * 0)[1].astype(np.float64)
    d = x.astype(np.float64)
    wanted = np.concatenate([np.cumsum(d[:8], 0), np.cumsum(d[8:], 0)])
    assert np.all(np.abs(ours - wanted) <= 16 * ULP[dtype])
    lower = run(unary("tril(t)", dtype), x, x * 0)[1]
    assert np.array_equal(lower.astype(np.float64), np.concatenate([np.tril(d[:8]), np.tril(d[8:])]))


def test_transpose() -> None:
    text = """
kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[N, M]) {
  let i = ctx.block.x * 4
  let j = ctx.block.y * 8
  Y[j :+ 8, i :+ 4] = transpose(X[i :+ 4, j :+ 8])
}
"""
    x = tile(10, 20)
    assert np.array_equal(run(text, x, np.zeros((20, 10), np.float32), grid=(3, 3))[1], x.T)


def test_flat_is_a_view_of_the_tile() -> None:
    text = """
kernel k(X: tensor<f32>[4, 8], Y: tensor<f32>[2, 32]) {
  var t = X[:, :]
  let row = flat(t)
  Y[0 :+ 1, :] = row
  t = t * 2.0
  Y[1 :+ 1, :] = row
}
"""
    x = tile(4, 8)
    assert np.array_equal(run(text, x, np.zeros((2, 32), np.float32))[1], np.stack([x.reshape(-1), 2 * x.reshape(-1)]))


def test_gather_from_a_tensor_and_from_a_tile() -> None:
    text = """
kernel k(T: tensor<f32>[N], I: tensor<i32>[M, 8], Y: tensor<f32>[M, 8], Z: tensor<f32>[M, 8]) {
  let r = ctx.block.x
  Y[r :+ 1, :] = gather(T, I[r :+ 1, :])
  var own: tile<f32>[1, 16] = 0.0
  own[0 :+ 1, 0 :+ 16] = f32(iota(16) * (r + 1))
  Z[r :+ 1, :] = gather(own, I[r :+ 1, :])
}
"""
    t = R.standard_normal(16).astype(np.float32)
    i = R.integers(0, 16, (3, 8)).astype(np.int32)
    zero = np.zeros((3, 8), np.float32)
    _, _, y, z = run(text, t, i, zero, zero.copy())
    assert np.array_equal(y, t[i])
    assert np.array_equal(z, i * (np.arange(3)[:, None] + 1))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("call", ["dot", "dot_t"])
def test_products_of_floats(call: str, dtype: str) -> None:
    other = "K, N" if call == "dot" else "N, K"
    slice_ = "0 :+ 24, j :+ 8" if call == "dot" else "j :+ 8, 0 :+ 24"
    text = f"""
kernel k(A: tensor<{dtype}>[M, K], B: tensor<{dtype}>[{other}], C: tensor<f64>[M, N]) {{
  let i = ctx.block.x * 8
  let j = ctx.block.y * 8
  var acc: tile<f32>[8, 8] = 0.0
  acc += {call}(A[i :+ 8, 0 :+ 24], B[{slice_}])
  C[i :+ 8, j :+ 8] = acc
}}
"""
    a = R.standard_normal((20, 24)).astype(DTYPES[dtype])
    b = R.standard_normal((24, 12)).astype(DTYPES[dtype])
    given = b if call == "dot" else np.ascontiguousarray(b.T)
    c = run(text, a, given, np.zeros((20, 12)), grid=(3, 2))[2]
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    assert np.allclose(c, wanted, rtol=1e-5, atol=1e-5)  # f32 accumulation, whatever the operands


def test_a_product_over_a_runtime_length() -> None:
    text = """
kernel k(A: tensor<f32>[8, K], B: tensor<f32>[K, 8], C: tensor<f32>[8, 8]) {
  C[0 :+ 8, 0 :+ 8] = dot(A[0 :+ 8, :], B[:, 0 :+ 8])
}
"""
    a, b = tile(8, 13), tile(13, 8)
    c = run(text, a, b, np.zeros((8, 8), np.float32))[2]
    assert np.allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32"])
def test_integer_products_accumulate_in_i32_and_wrap(dtype: str) -> None:
    text = f"""
kernel k(A: tensor<{dtype}>[4, 32], B: tensor<{dtype}>[32, 4], C: tensor<i32>[4, 4]) {{
  C[:, :] = dot(A[:, :], B[:, :])
}}
"""
    high = {"i8": 127, "u8": 255, "i32": 2**31 - 1}[dtype]
    a = R.integers(-high - 1 if dtype != "u8" else 0, high, (4, 32), endpoint=True).astype(DTYPES[dtype])
    b = R.integers(0, high, (32, 4), endpoint=True).astype(DTYPES[dtype])
    exact = a.astype(object) @ b.astype(object)
    wanted = np.array([[(int(v) + 2**31) % 2**32 - 2**31 for v in row] for row in exact], np.int32)
    assert np.array_equal(run(text, a, b, np.zeros((4, 4), np.int32))[2], wanted)


def test_program_id_extent_and_grid_extent() -> None:
    text = """
kernel k(X: tensor<f32>[M, N], Y: tensor<i32>[6]) {
  if program_id(0) == 1 && program_id(1) == 2 {
    Y[0] = program_id(0)
    Y[1] = ctx.block.y
    Y[2] = ctx.blocks.x
    Y[3] = ctx.blocks.y
    Y[4] = extent(X, 0)
    Y[5] = extent(X, 1) + N
  }
}
"""
    y = run(text, np.zeros((5, 7), np.float32), np.zeros(6, np.int32), grid=(2, 3))[1]
    assert y.tolist() == [1, 2, 2, 3, 5, 14]


def test_atomic_add_gives_the_old_value_once_a_block() -> None:
    text = """
kernel k(C: tensor<i32>[2], T: tensor<i32>[N]) {
  let mine = atomic_add(C, 1, 3)
  T[ctx.block.x] = mine
}
"""
    c, t = run(text, np.zeros(2, np.int32), np.full(6, -1, np.int32))
    assert c.tolist() == [0, 18]
    assert sorted(t.tolist()) == [0, 3, 6, 9, 12, 15]


def test_atomic_add_wraps_and_atomic_cas_compares() -> None:
    text = """
kernel k(C: tensor<i32>[3, 1], T: tensor<i32>[3]) {
  T[0] = atomic_add(C, 0, 2147483647)
  T[1] = atomic_cas(C, 1, 5, 9)
  T[2] = atomic_cas(C, 2, 5, 9)
}
"""
    c, t = run(text, np.array([[2], [5], [6]], np.int32), np.zeros(3, np.int32))
    assert c.reshape(-1).tolist() == [-(2**31) + 1, 9, 6]
    assert t.tolist() == [2, 5, 6]


def test_bf16_transcendentals_round_once() -> None:
    x = np.linspace(0.1, 3, 128).astype(BF16).reshape(8, 16)
    y = run(unary("exp(t)", "bf16"), x, np.zeros_like(x))[1]
    assert np.array_equal(y, np.exp(x.astype(np.float64)).astype(np.float32).astype(BF16))


def test_rowmax_of_a_row_with_a_nan_is_nan() -> None:
    text = """
kernel k(X: tensor<f32>[M, 4], Y: tensor<f32>[M, 1]) {
  Y[ctx.block.x :+ 1, :] = rowmax(X[ctx.block.x :+ 1, :])
}
"""
    x = np.array([[1, np.nan, 3, 0], [np.nan, 1, 2, 3], [4, 1, 0, 0]], np.float32)
    y = run(text, x, np.zeros((3, 1), np.float32))[1]
    assert np.isnan(y[:2]).all() and y[2, 0] == 4

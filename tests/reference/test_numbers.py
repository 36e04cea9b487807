"""Scalars and element types: index arithmetic, real integers, conversions, rounding where the language rounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phobos.runtime.reference import numbers
from tests.reference.support import BF16, DTYPES, run


def trunc_div(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def test_division_truncates_and_the_remainder_has_the_sign_of_the_dividend() -> None:
    text = """
kernel k(A: tensor<i64>[N], B: tensor<i64>[N], Q: tensor<i64>[N], R: tensor<i64>[N]) {
  let p = ctx.block.x
  Q[p] = A[p] / B[p]
  R[p] = A[p] % B[p]
}
"""
    a = np.array([7, -7, 7, -7, 0, 2**40 + 1, -(2**40) - 1], np.int64)
    b = np.array([2, 2, -2, -2, 5, 3, 3], np.int64)
    _, _, q, r = run(text, a, b, a * 0, a * 0)
    assert q.tolist() == [trunc_div(int(x), int(y)) for x, y in zip(a, b)]
    assert (q * b + r).tolist() == a.tolist() and all(int(x) * int(y) >= 0 for x, y in zip(a, r))


def test_tiles_divide_in_the_same_way() -> None:
    text = """
kernel k(A: tensor<i32>[M, 8], B: tensor<i32>[M, 8]) {
  let r = ctx.block.x
  let q = A[r :+ 1, :] / B[r :+ 1, :]
  let rest = A[r :+ 1, :] % B[r :+ 1, :]
  A[r :+ 1, :] = q * 100 + rest
}
"""
    rng = np.random.default_rng(1)
    a, b = rng.integers(-99, 99, (4, 8)).astype(np.int32), rng.choice([-7, -2, 3, 5], (4, 8)).astype(np.int32)
    q = np.vectorize(lambda x, y: trunc_div(int(x), int(y)))(a, b)
    assert np.array_equal(run(text, a, b)[0], q * 100 + (a - q * b))


def test_an_index_has_64_bits() -> None:
    text = """
kernel k(Y: tensor<i64>[N]) {
  let p = ctx.block.x
  Y[p] = (p + 2147483647) * 4294967296 / 2 + p
}
"""
    y = run(text, np.zeros(4, np.int64), grid=4)
    assert y.tolist() == [(p + 2**31 - 1) * 2**32 // 2 + p if (p + 2**31 - 1) * 2**32 < 2**63
                          else trunc_div((p + 2**31 - 1) * 2**32 - 2**64, 2) + p for p in range(4)]  # fmt: skip


def test_elements_of_narrow_tensors_are_indices_and_stores_wrap() -> None:
    text = """
kernel k(A: tensor<i8>[N], Y: tensor<i8>[N], Z: tensor<u8>[N], W: tensor<i64>[N]) {
  let p = ctx.block.x
  Y[p] = A[p] * 3
  Z[p] = A[p] * 3
  W[p] = A[p] * 300000000000
}
"""
    a = np.array([100, -100, 5, -1], np.int8)
    wide = a.astype(np.int64)
    _, y, z, w = run(text, a, a * 0, np.zeros(4, np.uint8), np.zeros(4, np.int64))
    assert np.array_equal(y, (wide * 3).astype(np.int8)) and np.array_equal(z, (wide * 3).astype(np.uint8))
    assert np.array_equal(w, wide * 300000000000)


def test_real_integers_wrap_at_their_width() -> None:
    text = """
kernel k(A: tensor<i64>[N], Y: tensor<i64>[N], Z: tensor<i64>[N]) {
  let p = ctx.block.x
  let small = i32(A[p])
  Y[p] = small * small + 1
  let byte = u8(A[p])
  Z[p] = i64(byte) + 1000
}
"""
    a = np.array([3, 70000, -5, 2**40 + 7], np.int64)
    _, y, z = run(text, a, a * 0, a * 0)
    small = a.astype(np.int32).astype(object)
    assert y.tolist() == [(int(s) * int(s) + 1 + 2**31) % 2**32 - 2**31 for s in small]
    assert z.tolist() == [int(x) % 256 + 1000 for x in a]


@pytest.mark.parametrize("target", ["i8", "u8", "i32", "i64"])
def test_float_to_integer_truncates_and_saturates_and_nan_is_0(target: str) -> None:
    text = f"""
kernel k(X: tensor<f64>[M, 8], Y: tensor<{target}>[M, 8], S: tensor<{target}>[M, 8]) {{
  let r = ctx.block.x
  Y[r :+ 1, :] = {target}(X[r :+ 1, :])
  for c in range(0, 8) {{
    S[r, c] = {target}(X[r, c])
  }}
}}
"""
    x = np.array([[1.9, -1.9, 1e30, -1e30, np.nan, np.inf, -np.inf, 200.7], [127.9, 128.0, -128.9, -129.0, 255.9, 256.0,
                  2147483647.5, -2147483648.9]])  # fmt: skip
    info = np.iinfo(DTYPES[target])
    wanted = [[0 if np.isnan(v) else int(np.clip(np.trunc(v), float(info.min), float(info.max))) if abs(v) < 2**62
               else int(info.max if v > 0 else info.min) for v in row] for row in x]  # fmt: skip
    zero = np.zeros(x.shape, DTYPES[target])
    _, y, s = run(text, x, zero, zero.copy())
    assert y.tolist() == wanted and s.tolist() == wanted


@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64"])
def test_float_to_float_rounds_once_to_nearest_even(source: str, target: str) -> None:
    text = f"""
kernel k(X: tensor<{source}>[1, 64], Y: tensor<{target}>[1, 64], Z: tensor<{target}>[1, 64]) {{
  Y[:, :] = X[:, :]
  Z[:, :] = {target}(X[:, :])
}}
"""
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((1, 64)) * 3).astype(DTYPES[source])
    zero = np.zeros((1, 64), DTYPES[target])
    _, y, z = run(text, x, zero, zero.copy())
    d = x.astype(np.float64)
    if target == "bf16":
        wanted = _nearest_bf16(d)
    else:
        wanted = d.astype(DTYPES[target]).astype(np.float64)
    assert np.array_equal(y.astype(np.float64), wanted) and np.array_equal(z.astype(np.float64), wanted)


def _nearest_bf16(values: np.ndarray) -> np.ndarray:
    """By exact arithmetic: bf16 has 8 bits of significand."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(mantissa * 256) / 256, exponent)


@given(st.floats(1e-30, 1e30))
@settings(max_examples=200)
def test_f64_to_bf16_never_rounds_twice(x: float) -> None:
    ours = numbers.convert(np.float64(x), "f64", "bf16")
    assert float(ours) == float(_nearest_bf16(np.array(x)))


@given(st.integers(0, 62), st.sampled_from((0, 1, 3)), st.integers(-3, 3), st.sampled_from((1, -1)))
@settings(max_examples=200, deadline=None)
def test_an_integer_to_bf16_never_rounds_twice(exponent: int, halves: int, beside: int, sign: int) -> None:
    """At and around the ties: 54 and more bits do not fit in f64 on the way."""
    x = sign * max(0, (1 << exponent) + (halves << exponent >> 8) + beside)
    dropped = max(0, x.bit_length() - 8)
    wanted = round(Fraction(x, 1 << dropped)) << dropped  # to even
    assert int(numbers.convert(x, "index", "bf16")) == wanted


def test_f64_just_above_a_tie_goes_up_in_bf16() -> None:
    x = 1.0 + 2.0**-8 + 2.0**-40  # through f32 this would become the tie, and go down to even
    assert float(numbers.convert(np.float64(x), "f64", "bf16")) == 1.0 + 2.0**-7


def test_half_arithmetic_rounds_at_every_operation() -> None:
    text = """
kernel k(A: tensor<f16>[1, 4], B: tensor<f16>[1, 4], Y: tensor<f16>[1, 4], Z: tensor<f32>[1, 4]) {
  Y[:, :] = A[:, :] * B[:, :] + A[:, :]
  Z[:, :] = A[:, :] * B[:, :] + A[:, :]
}
"""
    a = np.array([[1.001, 2.7, 1000.0, 0.1]], np.float16)
    b = np.array([[3.3, 0.7, 60.0, 0.1]], np.float16)
    _, _, y, z = run(text, a, b, a * 0, np.zeros((1, 4), np.float32))
    product = (a.astype(np.float32) * b.astype(np.float32)).astype(np.float16)
    wanted = (product.astype(np.float32) + a.astype(np.float32)).astype(np.float16)
    assert np.array_equal(y, wanted) and np.array_equal(z, wanted.astype(np.float32))


def test_f16_with_bf16_joins_to_f32_and_f32_with_f64_to_f64() -> None:
    text = """
kernel k(A: tensor<f16>[1, 4], B: tensor<bf16>[1, 4], Y: tensor<f32>[1, 4],
         C: tensor<f64>[1, 4], Z: tensor<f64>[1, 4]) {
  Y[:, :] = A[:, :] * B[:, :]
  Z[:, :] = Y[:, :] + C[:, :]
}
"""
    a, b = np.array([[1.001, 2.7, 9.0, 0.1]], np.float16), np.array([[3.3, 0.7, 60.0, 0.1]], BF16)
    c = np.array([[1e-12, 1.0, 2.0, 3.0]])
    _, _, y, _, z = run(text, a, b, np.zeros((1, 4), np.float32), c, c * 0)
    product = a.astype(np.float32) * b.astype(np.float32)
    assert np.array_equal(y, product) and np.array_equal(z, product.astype(np.float64) + c)


def test_a_tile_with_a_scalar_computes_in_the_type_of_the_tile() -> None:
    text = """
kernel k(A: tensor<f16>[1, 2], Y: tensor<f32>[1, 2]) {
  Y[:, :] = A[:, :] * 0.1
}
"""
    a = np.array([[3.0, 7.0]], np.float16)
    assert np.array_equal(run(text, a, np.zeros((1, 2), np.float32))[1], (a * np.float16(0.1)).astype(np.float32))


def test_annotations_fix_the_type_of_a_scalar() -> None:
    text = """
kernel k(Y: tensor<f64>[2], I: tensor<i64>[1]) {
  var wide: f64 = 0.0
  var narrow = 0.0
  for i in range(0, 10) {
    wide += f64(1) / 3.0
    narrow += f32(1) / 3.0
  }
  Y[0] = wide
  Y[1] = f64(narrow)
  var byte: i8 = 300
  I[0] = byte
}
"""
    y, i = run(text, np.zeros(2), np.zeros(1, np.int64))
    third, wide, narrow = np.float64(1) / np.float64(np.float32(3)), np.float64(0), np.float32(0)
    for _ in range(10):
        wide, narrow = wide + third, np.float32(narrow + np.float32(1) / np.float32(3))
    assert y[0] == wide and y[1] == np.float64(narrow) and y[0] != y[1]
    assert i[0] == 44


def test_bits_and_shifts() -> None:
    text = """
kernel k(A: tensor<i64>[N], Y: tensor<i64>[N, 6]) {
  let p = ctx.block.x
  let a = A[p]
  Y[p, 0] = a & 12
  Y[p, 1] = a | 3
  Y[p, 2] = a ^ 5
  Y[p, 3] = a << 3
  Y[p, 4] = a >> 1
  Y[p, 5] = ~a
}
"""
    a = np.array([0, 5, -7, 1 << 40], np.int64)
    wanted = np.stack([a & 12, a | 3, a ^ 5, a << 3, a >> 1, ~a], 1)
    assert np.array_equal(run(text, a, np.zeros((4, 6), np.int64))[1], wanted)


@pytest.mark.parametrize(("dtype", "wanted"), [("u8", 250), ("i8", -6), ("i32", -6)])
def test_the_inverse_of_a_real_integer_has_its_width(dtype: str, wanted: int) -> None:
    """By a number that is one for all blocks, and by one a block."""
    text = f"""
kernel k(Y: tensor<i32>[N, 2], n: i32) {{
  let p = ctx.block.x
  Y[p, 0] = ~{dtype}(n)
  Y[p, 1] = ~{dtype}(p + 5)
}}
"""
    y = run(text, np.zeros((2, 2), np.int32), 5)
    assert y[0].tolist() == [wanted, wanted] and y[1].tolist() == [wanted, wanted - 1]


def test_bit_operations_on_integer_tiles() -> None:
    text = """
kernel k(A: tensor<i32>[1, 4], Y: tensor<i32>[3, 4]) {
  Y[0 :+ 1, :] = (A[:, :] & 6) | 1
  Y[1 :+ 1, :] = A[:, :] << 2
  Y[2 :+ 1, :] = ~A[:, :] ^ A[:, :] >> 1
}
"""
    a = np.array([[1, 7, -8, 2**30]], np.int32)
    wanted = np.concatenate([(a & 6) | 1, a << 2, ~a ^ (a >> 1)])
    assert np.array_equal(run(text, a, np.zeros((3, 4), np.int32))[1], wanted)


def test_minus_is_nought_minus() -> None:
    text = """
kernel k(X: tensor<f32>[1, 2]) {
  X[:, :] = -X[:, :]
}
"""
    y = run(text, np.array([[0.0, 3.0]], np.float32))
    assert y[0, 1] == -3 and not np.signbit(y[0, 0])


def test_bool_tensors_and_tiles() -> None:
    text = """
kernel k(A: tensor<bool>[1, 4], B: tensor<bool>[1, 4], Y: tensor<bool>[4, 4]) {
  let a = A[:, :]
  let b = B[:, :]
  Y[0 :+ 1, :] = a && b
  Y[1 :+ 1, :] = a || b
  Y[2 :+ 1, :] = !a
  Y[3 :+ 1, :] = a != b
}
"""
    a, b = np.array([[0, 0, 1, 1]], bool), np.array([[0, 1, 0, 1]], bool)
    assert np.array_equal(run(text, a, b, np.zeros((4, 4), bool))[2], np.concatenate([a & b, a | b, ~a, a ^ b]))


def test_scalar_parameters_of_every_type() -> None:
    text = """
kernel k(Y: tensor<f64>[7], a: f16, b: bf16, c: f32, d: f64, e: i32, f: bool, g: i64) {
  Y[0] = f64(a)
  Y[1] = f64(b)
  Y[2] = f64(c)
  Y[3] = d
  Y[4] = e
  if f { Y[5] = 1.0 }
  Y[6] = g
}
"""
    y = run(text, np.zeros(7), 0.1, 0.1, 0.1, 0.1, -3, True, 2**40)
    assert y.tolist() == [float(np.float16(0.1)), float(BF16(0.1)), float(np.float32(0.1)), 0.1, -3.0, 1.0, 2.0**40]


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"])
@given(a=st.integers(-(2**63), 2**63 - 1), b=st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=100)
def test_one_block_and_many_compute_the_same_integers(op: str, a: int, b: int) -> None:
    if op in ("/", "%") and b == 0:
        return
    one = numbers.integer(op, a, b, "index")
    with np.errstate(all="ignore"):
        many = numbers.integer(op, np.array([a, a]), np.array([b, b]), "index")
    assert [one, one] == many.tolist()


@given(a=st.integers(-(2**31), 2**31 - 1), b=st.integers(-(2**31), 2**31 - 1))
@settings(max_examples=100)
def test_one_block_and_many_wrap_i32_alike(a: int, b: int) -> None:
    for op in "+-*":
        with np.errstate(all="ignore"):
            many = numbers.integer(op, np.array([a], np.int32), np.array([b], np.int32), "i32")
        assert numbers.integer(op, a, b, "i32") == int(many[0])


def test_shifts_beyond_the_width_leave_no_bit() -> None:
    text = """
kernel k(A: tensor<i64>[N], Y: tensor<i64>[N, 4], n: i32) {
  let p = ctx.block.x
  Y[p, 0] = A[p] << n
  Y[p, 1] = A[p] >> n
  Y[p, 2] = A[p] << -n
  Y[p, 3] = A[p] >> -n
}
"""
    a = np.array([5, -7], np.int64)
    y = run(text, a, np.zeros((2, 4), np.int64), 64)[1]
    assert y.tolist() == [[0, 0, 0, 0], [0, -1, 0, -1]]

"""Element types as NumPy has them, and arithmetic as the language defines it.

A scalar is a Python `int` or `bool` or a NumPy float when all blocks of a group agree on it, else an array
with one element a block; a tile is an array with the blocks as its leading axis (1 where they agree).
Nothing here knows blocks or programs: every function maps values of one type to values of one type.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Value = Any
"""int | bool | np.floating | Array, as the paragraph above says."""

BF16 = np.dtype(ml_dtypes.bfloat16)

DTYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": BF16,
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
LIMITS: dict[str, tuple[int, int]] = {
    "i8": (-(1 << 7), (1 << 7) - 1),
    "u8": (0, (1 << 8) - 1),
    "i32": (-(1 << 31), (1 << 31) - 1),
    "i64": (-(1 << 63), (1 << 63) - 1),
    "index": (-(1 << 63), (1 << 63) - 1),
}
_WIDTH = {"f16": 0, "bf16": 0, "f32": 1, "f64": 2}


class ZeroDivision(Exception):
    """Integer division or remainder by 0. `where` is a boolean array over the operands' broadcast, or None (scalar)."""

    def __init__(self, where: Array | None, op: str) -> None:
        super().__init__(op)
        self.where = where
        self.op = op


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def join(left: str, right: str) -> str:
    """The type in which two element types compute together (language.md section 3)."""
    if left == right:
        return left
    if left in FLOATS and right in FLOATS:
        if _WIDTH[left] == _WIDTH[right]:  # f16 with bf16
            return "f32"
        return left if _WIDTH[left] > _WIDTH[right] else right
    if left in FLOATS:
        return left
    if right in FLOATS:
        return right
    order = ("bool", "i8", "u8", "i32", "i64", "index")
    return max(left, right, key=order.index)


# --- integers -------------------------------------------------------------------------------------------


def wrap(number: int, dtype: str) -> int:
    """`number` modulo the width of an integer type."""
    low, high = LIMITS[dtype]
    if low <= number <= high:
        return number
    return (number - low) % (high - low + 1) + low


def _quotient(left: int, right: int) -> int:
    result = abs(left) // abs(right)
    return result if (left < 0) == (right < 0) else -result


def _divide_arrays(left: Value, right: Value) -> Array:
    quotient = np.asarray(np.floor_divide(left, right))
    inexact = np.fmod(left, right) != 0
    return np.asarray(quotient + (inexact & ((np.asarray(left) < 0) != (np.asarray(right) < 0))), dtype=quotient.dtype)


def integer(op: str, left: Value, right: Value, dtype: str) -> Value:
    """`left op right` for integer scalars or tiles of one type; wraps at its width."""
    if type(left) is int and type(right) is int:
        if op == "+":
            result = left + right
        elif op == "-":
            result = left - right
        elif op == "*":
            result = left * right
        elif op == "/" or op == "%":
            if right == 0:
                raise ZeroDivision(None, op)
            result = _quotient(left, right)
            if op == "%":
                result = left - result * right
        elif op == "&":
            result = left & right
        elif op == "|":
            result = left | right
        elif op == "^":
            result = left ^ right
        else:
            bits = LIMITS[dtype][1].bit_length() + (LIMITS[dtype][0] < 0)
            if 0 <= right < bits:
                result = left << right if op == "<<" else left >> right
            else:  # every bit is shifted out
                result = 0 if op == "<<" or left >= 0 else -1
        return wrap(result, dtype)
    if op == "+":
        return np.add(left, right)
    if op == "-":
        return np.subtract(left, right)
    if op == "*":
        return np.multiply(left, right)
    if op == "/" or op == "%":
        zero = np.asarray(right) == 0
        if zero.any():
            raise ZeroDivision(np.broadcast_to(zero, np.broadcast_shapes(np.shape(left), np.shape(right))), op)
        return _divide_arrays(left, right) if op == "/" else np.fmod(left, right)
    if op == "&":
        return np.bitwise_and(left, right)
    if op == "|":
        return np.bitwise_or(left, right)
    if op == "^":
        return np.bitwise_xor(left, right)
    if type(left) is int:
        left = np.asarray(left, DTYPES[dtype])
    if type(right) is int:
        right = np.asarray(wrap(right, dtype), DTYPES[dtype])
    return np.left_shift(left, right) if op == "<<" else np.right_shift(left, right)


def inverse(value: Value, dtype: str) -> Value:
    """`~value`: the bits of its width turned over."""
    return wrap(~value, dtype) if type(value) is int else np.invert(value)


# --- floats ---------------------------------------------------------------------------------------------


_FLOAT_OPS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


def floating(op: str, left: Value, right: Value, out: Array | None = None) -> Value:
    """`left op right` for float scalars or tiles of one type, rounded to it; into `out` where that is given."""
    if op == "%":
        return np.fmod(left, right)
    if out is not None:
        return _FLOAT_OPS[op](left, right, out=out)
    return _FLOAT_OPS[op](left, right)


_COMPARISONS = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def compare(op: str, left: Value, right: Value) -> Value:
    """Any comparison with NaN is false, but `!=` is true."""
    result = _COMPARISONS[op](left, right)
    return result if isinstance(result, np.ndarray) else bool(result)


# --- conversions ----------------------------------------------------------------------------------------


def _bf16_from_f64(values: Array) -> Array:
    """Rounded once: through f32 by round-to-odd, since f64 -> f32 -> bf16 would round twice."""
    narrow = values.astype(np.float32)
    back = narrow.astype(np.float64)
    inexact = (back != values) & np.isfinite(back) & np.isfinite(values)
    bits = narrow.view(np.uint32)
    toward_zero = bits - (inexact & (np.abs(back) > np.abs(values)))
    odd = np.where(inexact, toward_zero | 1, bits).astype(np.uint32)
    return odd.view(np.float32).astype(BF16)


def _f64_from_i64(values: Array) -> Array:
    """Exact where f64 can be, else rounded to odd, so that rounding to fewer bits afterwards rounds once."""
    wide = values.astype(np.int64)
    far = (wide >> 53 != 0) & (wide >> 53 != -1)
    last = np.int64(2047)  # 63 bits less the 53 of f64, and the bit that is made odd
    return np.where(far & (wide & last != 0), wide & ~last | 1024, wide).astype(np.float64)


def _saturate(values: Array, dtype: str) -> Array:
    """Float to integer: toward zero, NaN to 0, the ends of the range for what is outside it."""
    low, high = LIMITS[dtype]
    wide = np.trunc(values.astype(np.float64))
    inside = (
        (wide > float(low) - 1.0) & (wide < float(high) + 1.0)
        if dtype not in ("i64", "index")
        else (
            (wide >= float(low)) & (wide < float(high))  # float(high) is 2**63, one past the end
        )
    )
    result = np.where(inside, wide, 0.0).astype(DTYPES[dtype])
    result = np.where(~inside & (wide > 0), np.asarray(high, DTYPES[dtype]), result)
    return np.where(~inside & (wide < 0), np.asarray(low, DTYPES[dtype]), result)


def convert_array(values: Array, source: str, target: str) -> Array:
    """An array of element type `source` as one of `target`; the same array where nothing changes."""
    wanted = DTYPES[target]
    if values.dtype == wanted:
        return values
    if source in FLOATS:
        if target in FLOATS:
            if source == "f64" and target == "bf16":
                return _bf16_from_f64(values)
            if source == "bf16" and target in ("f16", "f64"):
                return values.astype(np.float32).astype(wanted)
            return values.astype(wanted)
        if target == "bool":
            return np.asarray(values != 0)
        return _saturate(values, target)
    if target == "bool":
        return np.asarray(values != 0)
    if target == "bf16":
        return _bf16_from_f64(_f64_from_i64(values))
    return values.astype(wanted)


def convert(value: Value, source: str, target: str) -> Value:
    """A scalar or tile of type `source` as `target` (language.md section 3: round to even, wrap, saturate)."""
    if isinstance(value, np.ndarray):
        return convert_array(value, source, target)
    if source == target:
        return value
    if source not in FLOATS:
        if target in LIMITS:
            return wrap(int(value), target)
        if target == "bool":
            return value != 0
        return convert_array(np.asarray(value, DTYPES[source]), source, target)[()]
    result = convert_array(np.asarray(value, DTYPES[source]), source, target)[()]
    return python(result, target)


def python(element: Value, dtype: str) -> Value:
    """One element out of an array as a scalar of this module: int, bool, or a NumPy float."""
    if dtype in FLOATS:
        return element
    return bool(element) if dtype == "bool" else int(element)


def literal(value: float, dtype: str) -> Value:
    return DTYPES[dtype].type(value)


def zero(dtype: str) -> Value:
    return python(DTYPES[dtype].type(0), dtype)


def bits(values: Array) -> Array:
    """The bit patterns of an array, so that values compare as memory does (NaN equals itself, -0.0 is not 0.0)."""
    return values if values.dtype == np.bool_ else values.view(f"u{values.dtype.itemsize}")

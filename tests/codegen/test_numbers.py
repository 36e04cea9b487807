"""Numbers at the edges of their types: the emitted text makes of them what the reference runtime makes of them."""

from __future__ import annotations

import numpy
import pytest

from tests.codegen import host
from tests.codegen.compare import TYPES, agree

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

INF, NAN = float("inf"), float("nan")
REALS = [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 3.0, 7.75, -12.0, 1e-6, 250.5, -60000.0, 65504.0, INF, -INF, NAN]
FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGERS = ["i8", "u8", "i32", "i64"]


def edges(dtype: str) -> list[int]:
    """Sixteen integers of a type, its ends among them."""
    low, high = int(numpy.iinfo(TYPES[dtype]).min), int(numpy.iinfo(TYPES[dtype]).max)
    return [low, high, high - 1, low + 1, 0, 1, 2, 3, 7, 8, 9, 31, 63, high // 3, 100, low // 2 if low else 200]


def check_pairs(dtype: str, first: list[float], second: list[float], expressions: list[str]) -> None:
    """Each of `first` with each of `second`, as `a` and `b` of every expression."""
    names = [f"R{number}" for number in range(len(expressions))]
    stored = "\n".join(f"{name}[0 :+ 16, 0 :+ 16] = {e}" for name, e in zip(names, expressions, strict=True))
    square = f"tensor<{dtype}>[16, 16]"
    with numpy.errstate(all="ignore"):
        agree(
            f"""
            @launch(64)
            kernel k(A: {square}, B: {square}, {", ".join(f"{name}: {square}" for name in names)}) {{
              let a = A[0 :+ 16, 0 :+ 16]
              let b = B[0 :+ 16, 0 :+ 16]
              {stored}
            }}
            """,
            given={
                "A": numpy.repeat(numpy.array(first, object)[:, None], 16, 1),
                "B": numpy.repeat(numpy.array(second, object)[None, :], 16, 0),
                **dict.fromkeys(names, 0),
            },
            grid=(1, 1, 1),
            orders=(0,),
            tolerance=1e-4 if dtype == "f32" else None,
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype: str) -> None:
    expressions = [
        "a + b", "a - b", "a * b", "a / b", "a % b", "a * b + a", "a - a * b", "-a", "pow(a, b)", "tmax(a, b)",
        "tmin(a, b)", "where(a < b, a, b)", "where(a >= b, a, b)", "where(a == b, a, b)", "where(a != b, a, b)",
        "where(!(a <= b) || a > b, a, b)", "argsel(a, b, b, a)", "exp(a)", "log(a)", "sqrt(a)", "tanh(a)", "round(a)",
    ]  # fmt: skip
    check_pairs(dtype, REALS, REALS, expressions)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: str) -> None:
    expressions = [
        "a + b", "a - b", "a * b", "-a", "~a", "a & b", "a | b", "a ^ b", "tmax(a, b)", "tmin(a, b)", "a * b + a",
        "where(a < b, a, b)", "where(a + b > a, a, b)", "a / 3", "a % 7",
    ]  # fmt: skip
    check_pairs(dtype, edges(dtype), edges(dtype), expressions)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_of_integers(dtype: str) -> None:
    divisors = [b or 5 for b in edges(dtype)]
    if dtype != "u8":
        divisors[4] = -1  # the least integer by it is out of range
    check_pairs(dtype, edges(dtype), divisors, ["a / b", "a % b"])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_any_count(dtype: str) -> None:
    """By less than 0, or the width and more, every bit is shifted out."""
    check_pairs(dtype, edges(dtype), edges(dtype), ["a << b", "a >> b"])


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS])
def test_conversions(source: str) -> None:
    """Ties and what rounding twice would get wrong, among others: just above the middle of two neighbours in bf16."""
    between = [1 + 2**-8, 1 + 2**-8 + 2**-30, 1 + 3 * 2**-8, 1 + 2**-11 + 2**-30, -(257 + 2**-20), 2.0**-25 * 1.01]
    if source in FLOATS:
        values: list[float] = [*REALS, *between, 127.5, -128.7, 255.9, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 3e38]
    else:
        wide = [257 * 2**20 + 1, 257 * 2**23 + 1, 2**24 + 1, 257, 257 * 2**32 + 1, 257 * 2**40 + 1, -(257 * 2**54 + 1)]
        low, high = edges(source)[:2]
        values = [*edges(source), *(n for n in wide if low <= n <= high)]
    targets = [t for t in (*FLOATS, *INTEGERS) if t != source]
    count = len(values)
    text = f"""
        @launch(32)
        kernel k(X: tensor<{source}>[{count}], {", ".join(f"T_{t}: tensor<{t}>[{count}]" for t in targets)}) {{
          let x = X[0 :+ {count}]
          {chr(10).join(f"T_{t}[0 :+ {count}] = {t}(x)" for t in targets)}
        }}
        """
    with numpy.errstate(all="ignore"):
        given = {"X": numpy.array(values, object).astype(TYPES[source]), **{f"T_{t}": 0 for t in targets}}
        agree(text, given=given, grid=(1, 1, 1), orders=(0,), tolerance=1e-300)


@pytest.mark.parametrize("columns", [1, 8, 33, 200])
@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_that_hold_what_is_no_number(dtype: str, columns: int) -> None:
    """The largest of a row with a NaN is NaN, and it is at the first of them; the largest of equals is at the first."""
    rows = numpy.full((8, columns), -1.0)
    rows[0] = NAN
    rows[1] = -INF
    rows[2, -1] = NAN
    rows[3, columns // 2 :] = NAN
    rows[4, columns // 3] = INF
    rows[5, 0], rows[5, -1] = NAN, INF
    rows[6, columns // 4 :] = 2.0
    agree(
        f"""
        @launch(64)
        kernel k(X: tensor<{dtype}>[8, {columns}], L: tensor<{dtype}>[8, 1], P: tensor<i64>[8, 1],
            S: tensor<{dtype}>[8, 1]) {{
          let x = X[0 :+ 8, 0 :+ {columns}]
          L[0 :+ 8, 0 :+ 1] = rowmax(x)
          P[0 :+ 8, 0 :+ 1] = rowargmax(x)
          S[0 :+ 8, 0 :+ 1] = rowsum(x)
        }}
        """,
        given={"X": rows, "L": 0, "P": 0, "S": 0},
        grid=(1, 1, 1),
    )

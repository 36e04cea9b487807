"""What the emitted text computes, feature by feature, against the reference runtime, in several thread orders."""

from __future__ import annotations

import numpy
import pytest

from phobos.lowering.options import Options
from phobos.lowering.support import missing
from tests.codegen import host
from tests.codegen.compare import agree, emitted, unit_of

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_arithmetic_rounds_in_the_tiles_own_type(dtype: str) -> None:
    agree(
        f"""
        @launch(64)
        kernel k(X: tensor<{dtype}>[N], Y: tensor<{dtype}>[N], a: {dtype}) {{
          let p = ctx.block.x * 96
          let x = X[p :+ 96]
          Y[p :+ 96] = -(x * a + x / 3.0) % 0.75 + tmax(x, x * x) - tmin(x, 0.25)
        }}
        """,
        {"N": 250},
        {"a": 1.5},
    )


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "i64"])
def test_integers_wrap_and_divide_toward_zero(dtype: str) -> None:
    agree(
        f"""
        @launch(32)
        kernel k(X: tensor<{dtype}>[N], Y: tensor<{dtype}>[N], Z: tensor<f32>[N]) {{
          let p = ctx.block.x * 32
          var x: tile<{dtype}>[32] = X[p :+ 32]
          var y = x * x * x + x
          Y[p :+ 32] = (y / 7 + y % 5) ^ (x << 2) | (x >> 1) & 3
          Z[p :+ 32] = f32(y)
        }}
        """,
        {"N": 70},
        given={"X": numpy.arange(70) % 120},
    )


def test_conversions_saturate_and_truncate() -> None:
    values = [0.0, -0.5, 1.9, -1.9, 200.0, -200.0, 3e9, -3e9, 1e30, float("inf"), -float("inf"), float("nan")]
    agree(
        """
        @launch(32)
        kernel k(X: tensor<f32>[12], A: tensor<i8>[12], B: tensor<u8>[12], C: tensor<i32>[12], D: tensor<i64>[12],
            E: tensor<f16>[12], F: tensor<f64>[12]) {
          let x = X[0 :+ 12]
          A[0 :+ 12] = i8(x)
          B[0 :+ 12] = u8(x)
          C[0 :+ 12] = i32(x)
          D[0 :+ 12] = i64(x)
          E[0 :+ 12] = f16(x)
          F[0 :+ 12] = f64(x)
        }
        """,
        given={"X": values, "A": [0] * 12, "B": [0] * 12, "D": [0] * 12},
        grid=(1, 1, 1),
    )


def test_exp_of_what_a_row_scales_and_shifts() -> None:
    """The factor of base two goes into scale and shift: at the edges of what a number can be it must not overflow."""
    big, inf, nan = 3e38, float("inf"), float("nan")
    rows = [
        (1.0, 0.0), (0.125, 20.5), (-0.5, -30.0), (1.0, -big), (1.0, big), (-1.0, big), (0.25, 1e30), (big, 0.0),
        (big, 20.5), (0.0, big), (1.0, inf), (1.0, -inf), (nan, 0.0), (1.0, nan), (0.0, 0.0), (1.0, 88.0),
    ]  # fmt: skip
    cells = [0.0, 1.0, -1.0, 30.25, -87.5, big, -big, inf, -inf, nan, 8e37, -2e38, 1e-20, 88.0, -0.0, 3.5]
    given = {
        "X": numpy.array([cells] * len(rows), numpy.float32),
        "B": numpy.array([[b] for b, _ in rows], numpy.float32),
        "C": numpy.array([[c] for _, c in rows], numpy.float32),
    }
    text = """
        kernel shifted(X: tensor<f32>[M, N], B: tensor<f32>[M, 1], C: tensor<f32>[M, 1], Y: tensor<f32>[M, N],
            Z: tensor<f32>[M, N], W: tensor<f32>[M, N]) {
          let r = ctx.block.x * 4
          let x = X[r :+ 4, 0 :+ 16]
          let b = B[r :+ 4, 0 :+ 1]
          let c = C[r :+ 4, 0 :+ 1]
          Y[r :+ 4, 0 :+ 16] = exp(x * b - c)
          Z[r :+ 4, 0 :+ 16] = exp(c + b * x)
          W[r :+ 4, 0 :+ 16] = exp(c - x * b)
        }
        """
    made = agree(text, {"M": 16, "N": 16}, given=given, orders=(0,), tolerance=2e-4)
    assert made.text.count("= ph_exp_of(") >= 3
    assert "= ph_exp(" in emitted(text.replace("exp(x * b - c)", "exp(x * x - x)")).text, (
        "none of it is one along a row"
    )


def test_functions_of_elements() -> None:
    agree(
        """
        @launch(64)
        kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], Z: tensor<f64>[N]) {
          let p = ctx.block.x * 128
          let x = X[p :+ 128]
          let q = x * x + 0.5
          let chosen = where(x > 0.0 && !(q < 1.0), x, q)
          Y[p :+ 128] = exp(x) + log(q) * sqrt(q) + tanh(x) + round(x * 4.0) + pow(q, 1.5) + chosen
          Z[p :+ 128] = sqrt(f64(q)) * exp(f64(x))
        }
        """,
        {"N": 300},
        tolerance=1e-4,
    )


def test_negative_starts_and_open_ends_are_masked() -> None:
    agree(
        """
        @launch(64)
        kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
          for r in range(0 - 8, M, 8) {
            Y[r + 4 :+ 8, 0 :+ 64] = X[r :+ 8, 0 - 3 :+ 64] + 1.0
          }
        }
        """,
        {"M": 21, "N": 50},
        grid=(1, 1, 1),
    )


def test_rows_and_columns_broadcast() -> None:
    agree(
        """
        @launch(128)
        kernel k(X: tensor<f32>[R, C], W: tensor<f32>[1, C], B: tensor<f32>[R, 1], Y: tensor<f32>[R, C]) {
          let r = ctx.block.x * 16
          var x: tile<f32>[16, 40] = X[r :+ 16, 0 :+ 40]
          var w = W[0 :+ 1, 0 :+ 40]
          var b = B[r :+ 16, 0 :+ 1]
          let s = rowsum(x * w) + b
          Y[r :+ 16, 0 :+ 40] = x * w + s - rowmax(x + b * w)
        }
        """,
        {"R": 37, "C": 40},
        grid=(3, 1, 1),
        tolerance=1e-4,
    )


@pytest.mark.parametrize(
    ("rows", "columns", "threads"),
    [(1, 1000, 256), (1, 1000, 96), (7, 33, 96), (7, 33, 32), (64, 4, 256), (3, 1024, 256), (3, 1024, 32)],
)
def test_row_reductions_of_any_shape(threads: int, rows: int, columns: int) -> None:
    agree(
        f"""
        @launch({threads})
        kernel k(X: tensor<f32>[{rows}, {columns}], S: tensor<f32>[{rows}, 1], M: tensor<f32>[{rows}, 1],
            A: tensor<i64>[{rows}, 1]) {{
          let x = X[0 :+ {rows}, 0 :+ {columns}]
          S[0 :+ {rows}, 0 :+ 1] = rowsum(x)
          M[0 :+ {rows}, 0 :+ 1] = rowmax(x) + rowmax(0.0 - x)
          A[0 :+ {rows}, 0 :+ 1] = rowargmax(x)
        }}
        """,
        grid=(1, 1, 1),
        orders=(0, 5),
        tolerance=2e-4,
    )


def test_what_other_threads_own() -> None:
    agree(
        """
        @launch(64)
        kernel k(X: tensor<f32>[24, 40], T: tensor<f32>[40, 24], C: tensor<f32>[24, 40], L: tensor<f32>[24, 40],
            F: tensor<f32>[1, 960], G: tensor<f32>[1, 40], I: tensor<i64>[1, 40], P: tensor<f32>[24, 40]) {
          var x: tile<f32>[24, 40] = X[0 :+ 24, 0 :+ 40]
          T[0 :+ 40, 0 :+ 24] = transpose(x * 2.0) + transpose(x)
          C[0 :+ 24, 0 :+ 40] = cumsum(x) - cumsum(x * 0.5)
          L[0 :+ 24, 0 :+ 40] = tril(x) + tril(x + 1.0)
          F[0 :+ 1, 0 :+ 960] = flat(x) * 3.0
          var row = x[5 :+ 1, 0 :+ 40]
          G[0 :+ 1, 0 :+ 40] = gather(row, I[0 :+ 1, 0 :+ 40]) + f32(iota(40))
          x[3, 4] = 9.0
          x[20 :+ 8, 36 :+ 8] = x[0 :+ 8, 2 :+ 8] + 1.0
          x[1 :+ 3, 0 :+ 40] = x[0 :+ 3, 0 :+ 40]
          P[0 :+ 24, 0 :+ 40] = x + x[7, 7]
        }
        """,
        grid=(1, 1, 1),
        given={"I": (numpy.arange(40) * 7) % 40},
        tolerance=1e-4,
    )


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 48), (16, 16, 5), (33, 20, 17), (1, 64, 32), (64, 1, 8)])
def test_products_of_any_shape(m: int, n: int, k: int) -> None:
    agree(
        f"""
        @launch(128)
        kernel k(A: tensor<f32>[{m}, K], B: tensor<f32>[K, {n}], BT: tensor<f32>[{n}, K], C: tensor<f32>[{m}, {n}],
            D: tensor<f32>[{m}, {n}], E: tensor<f32>[{m}, {n}]) {{
          C[0 :+ {m}, 0 :+ {n}] = dot(A[0 :+ {m}, 0 : K], B[0 : K, 0 :+ {n}]) * 0.5
          var acc: tile<f32>[{m}, {n}] = 1.0
          acc = acc * 2.0 + dot_t(A[0 :+ {m}, 0 : K], BT[0 :+ {n}, 0 : K]) + acc
          D[0 :+ {m}, 0 :+ {n}] = acc
          var a: tile<f32>[{m}, {k}] = A[0 :+ {m}, 0 :+ {k}]
          var s = dot(a * 2.0, B[0 :+ {k}, 0 :+ {n}])
          s += dot(a, B[0 :+ {k}, 0 :+ {n}]) + 1.0
          E[0 :+ {m}, 0 :+ {n}] = s
        }}
        """,
        {"K": k},
        grid=(1, 1, 1),
        orders=(0, 3),
        tolerance=2e-4,
    )


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64", "i8", "u8", "i32"])
def test_products_of_other_types(dtype: str) -> None:
    result = {"f64": "f64", "i8": "i32", "u8": "i32", "i32": "i32"}.get(dtype, "f32")
    agree(
        f"""
        @launch(64)
        kernel k(A: tensor<{dtype}>[32, K], B: tensor<{dtype}>[K, 24], C: tensor<{result}>[32, 24]) {{
          var acc: tile<{result}>[32, 24] = {"0" if result == "i32" else "0.0"}
          for k in range(0, K, 16) {{
            acc += dot(A[0 :+ 32, k :+ 16], B[k :+ 16, 0 :+ 24])
          }}
          C[0 :+ 32, 0 :+ 24] = acc
        }}
        """,
        {"K": 40},
        grid=(1, 1, 1),
        orders=(0, 3),
        given={"A": numpy.arange(32 * 40).reshape(32, 40) % 11, "B": numpy.arange(40 * 24).reshape(40, 24) % 7}
        if result == "i32"
        else {},
        tolerance=None if result == "i32" else 2e-3,
    )


def test_control_flow() -> None:
    agree(
        """
        fn scale(x: f32, n: i64) -> f32 {
          if n % 2 == 0 {
            return x * 2.0
          }
          var y = x
          for i in range(0, n) {
            if i == 3 {
              break
            }
            if i == 1 {
              continue
            }
            y = y + 1.0
          }
          return y
        }
        @launch(32)
        kernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {
          let b = ctx.block.x
          if b >= N || X[b] > 100.0 {
            return
          }
          var n = 0
          while n * n < b {
            n += 1
          }
          Y[b] = scale(X[b], b) + f32(n)
          Y[b] += scale(Y[b], 5)
        }
        """,
        {"N": 9},
        grid=(11, 1, 1),
    )


def test_views_are_read_where_they_are_used() -> None:
    agree(
        """
        @launch(32)
        kernel k(X: tensor<f32>[64], Y: tensor<f32>[64], Z: tensor<f32>[64]) {
          var i = 0
          let v = X[i + 3 :+ 32]
          i = 30
          Y[0 :+ 32] = v
          X[3 :+ 16] = 7.0
          Z[0 :+ 32] = v + f32(i)
          X[0 :+ 32] = X[1 :+ 32]
          X[32 :+ 32] = X[31 :+ 32]
        }
        """,
        grid=(1, 1, 1),
    )


def test_atomics_are_once_a_block_and_give_the_old_value() -> None:
    agree(
        """
        @launch(64)
        @persistent
        kernel k(COUNT: tensor<i32>[2], SEEN: tensor<i32>[N], LAST: tensor<f32>[1]) {
          let t = atomic_add(COUNT, 0, 2)
          SEEN[i64(t) / 2] = 1
          let was = atomic_cas(COUNT, 1, 0, 5)
          if was == 0 {
            LAST[0] = f32(was) + 3.0
          }
        }
        """,
        {"N": 8},
        grid=(6, 1, 1),
    )


def test_a_statement_over_a_length_known_when_run() -> None:
    agree(
        """
        @launch(64)
        kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[M, N], a: f32) {
          Y[0 : M, 0 : N] = X[0 : M, 0 : N] * a + 1.0
          Y[ctx.block.x :+ 1, 2 : N] += X[ctx.block.x :+ 1, 2 : N]
        }
        """,
        {"M": 3, "N": 77},
        {"a": 2.0},
        grid=(1, 1, 1),
    )


def test_bases_of_any_address_take_narrow_accesses() -> None:
    made = agree(
        """
        kernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {
          let p = ctx.block.x * 1024
          Y[p :+ 1024] = X[p :+ 1024] * 2.0
        }
        """,
        {"N": 5000},
        options=Options(vectors=False),
    )
    assert not made.wide and "ph_load" not in made.text


def test_bools_and_tiles_of_three_axes() -> None:
    agree(
        """
        @launch(64)
        kernel k(B: tensor<bool>[4, 6, 8], X: tensor<f32>[4, 6, 8], Y: tensor<f32>[4, 6, 8], C: tensor<bool>[4, 6, 8]) {
          let b = B[0 :+ 4, 0 :+ 6, 0 :+ 8]
          var x: tile<f32>[4, 6, 8] = X[0 :+ 4, 0 :+ 6, 0 :+ 8]
          var line = X[0 :+ 1, 0 :+ 6, 0 :+ 8]
          Y[0 :+ 4, 0 :+ 6, 0 :+ 8] = where(b, x + line, 0.0)
          C[0 :+ 4, 0 :+ 6, 0 :+ 8] = !b || x > line
        }
        """,
        grid=(1, 1, 1),
    )


@pytest.mark.parametrize("threads", [32, 128, 256])
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_products_on_tensor_cores(threads: int, dtype: str) -> None:
    made = agree(
        f"""
        @tensorcore
        @launch({threads})
        kernel k(A: tensor<{dtype}>[M, K], B: tensor<{dtype}>[K, N], C: tensor<f32>[M, N], D: tensor<f32>[M, 1]) {{
          let r = ctx.block.x * 64
          let c = ctx.block.y * 32
          var acc: tile<f32>[64, 32] = 1.0
          for k in range(0, K, 32) {{
            acc += dot(A[r :+ 64, k :+ 32], B[k :+ 32, c :+ 32])
          }}
          C[r :+ 64, c :+ 32] = acc * 0.5 + rowmax(acc)
          D[r :+ 64, 0 :+ 1] = rowsum(acc)
        }}
        """,
        {"M": 70, "N": 32, "K": 80},
        grid=(2, 1, 1),
        orders=(0, 3),
        tolerance=2e-2,
    )
    assert "ph_multiply_" in made.text


def test_attention_on_tensor_cores() -> None:
    made = agree(
        """
        @tensorcore
        @launch(128)
        kernel attention(Q: tensor<f16>[L, 32], K: tensor<f16>[L, 32], V: tensor<f16>[L, 32], O: tensor<f32>[L, 32],
            scale: f32) {
          let r = ctx.block.x * 64
          var q = Q[r :+ 64, 0 :+ 32]
          var top: tile<f32>[64, 1] = -3.0e38
          var den: tile<f32>[64, 1] = 0.0
          var acc: tile<f32>[64, 32] = 0.0
          for t in range(0, L, 64) {
            var s: tile<f32>[64, 64] = dot_t(q, K[t :+ 64, 0 :+ 32])
            s = where(iota(64) + t < L, s * scale, -3.0e38)
            let higher = tmax(top, rowmax(s))
            let p = exp(s - higher)
            let shrink = exp(top - higher)
            den = den * shrink + rowsum(p)
            acc = acc * shrink + dot(p, V[t :+ 64, 0 :+ 32])
            top = higher
          }
          O[r :+ 64, 0 :+ 32] = acc / den
        }
        """,
        {"L": 100},
        {"scale": 0.25},
        orders=(0, 3),
        tolerance=2e-3,
    )
    assert made.text.count("__device__ __forceinline__ void ph_multiply_f16_64x") == 2


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("unit", [1, 4, 8, 16])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_pipelined_loop_waits_for_what_it_multiplies(dtype: str, unit: int, transposed: bool) -> None:
    """Copies happen only when their group is waited for, so a buffer read too early or reused too early shows."""
    right = "dot_t(a, B[c :+ 32, k :+ 16])" if transposed else "dot(a, B[k :+ 16, c :+ 32])"
    rank = "[N, K]" if transposed else "[K, N]"
    made = agree(
        f"""
        {"@tensorcore" if dtype == "f16" else ""}
        @launch(64)
        kernel k(A: tensor<{dtype}>[M, K], B: tensor<{dtype}>{rank}, C: tensor<f32>[M, N]) {{
          let r = ctx.block.x * 32
          let c = ctx.block.y * 32
          var acc: tile<f32>[32, 32] = 0.0
          for k in range(0, K, 16) {{
            let a = A[r :+ 32, k :+ 16]
            acc += {right}
          }}
          C[r :+ 32, c :+ 32] = acc
        }}
        """,
        {"M": 48, "N": 32, "K": 16 * 7} if unit == 16 else {"M": 40, "N": 49 * unit, "K": 25 * unit},
        orders=(0, 1, 3),
        options=Options(multiples=tuple((name, unit) for name in "KN" if unit > 1)),
        tolerance=2e-3,
    )
    assert "ph_copies_wait" in made.text


def test_a_pipelined_loop_that_never_runs_leaves_its_sum() -> None:
    agree(
        """
        @launch(64)
        kernel k(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N], from: i64) {
          var acc: tile<f32>[32, 32] = 2.5
          for k in range(from, K, 16) {
            acc += dot(A[0 :+ 32, k :+ 16], B[k :+ 16, 0 :+ 32])
          }
          C[0 :+ 32, 0 :+ 32] = acc
        }
        """,
        {"M": 32, "N": 32, "K": 16},
        {"from": 16},
        grid=(1, 1, 1),
    )


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_pipelines_that_are_asked_for_take_whole_rounds_and_make_no_copies(dtype: str) -> None:
    made = agree(
        f"""
        @pipeline
        {"@tensorcore" if dtype == "f16" else ""}
        @launch(64)
        kernel k(A: tensor<{dtype}>[M, K], B: tensor<{dtype}>[K, N], C: tensor<f32>[M, N]) {{
          let r = ctx.block.x * 32
          var acc: tile<f32>[32, 32] = 0.0
          for k in range(0, K, 48) {{
            let a = A[r :+ 32, k :+ 48]
            var b = B[k :+ 48, 0 :+ 32]
            acc += dot(a, b)
          }}
          C[r :+ 32, 0 :+ 32] = acc
        }}
        """,
        {"M": 40, "N": 30, "K": 48 * 4 + 5},
        grid=(2, 1, 1),
        orders=(0, 1, 3),
        tolerance=2e-3,
    )
    assert "ph_copies_wait" in made.text


def test_a_copy_that_keeps_what_is_stored_over_stays_a_copy() -> None:
    made = agree(
        """
        @pipeline
        @launch(64)
        kernel k(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
          var acc: tile<f32>[16, 16] = 0.0
          for k in range(0, K, 16) {
            var a = A[0 :+ 16, k :+ 16]
            acc += dot(a, B[k :+ 16, 0 :+ 16])
          }
          for k in range(0, K, 16) {
            var a = A[0 :+ 16, k :+ 16]
            A[0 :+ 16, k :+ 16] = 0.0
            acc += dot(a, B[k :+ 16, 0 :+ 16])
          }
          C[0 :+ 16, 0 :+ 16] = acc
        }
        """,
        {"M": 16, "N": 16, "K": 48},
        grid=(1, 1, 1),
    )
    assert made.text.count("ph_copies_wait<0>();") == 1  # one loop of the two is double-buffered


def test_a_slice_of_a_tile_of_one_cell_may_miss_it() -> None:
    agree(
        """
        @launch(32)
        kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], Z: tensor<f32>[N]) {
          let p = ctx.block.x
          var t: tile<f32>[1, 1] = 0.5
          t[p :+ 1, 0 :] = 2.0
          X[p] = t[0, 0]
          let v = t[p :+ 1, 0 :+ 1]
          var u: tile<f32>[1, 1] = v
          Y[p] = u[0, 0]
          Z[p] = 0.0
        }
        """,
        {"N": 3},
    )


@pytest.mark.parametrize("back", [1, 64, 127])
def test_a_round_waits_for_the_cells_of_the_round_before(back: int) -> None:
    agree(
        f"""
        @launch(64)
        kernel k(Z: tensor<f32>[N], W: tensor<f32>[N]) {{
          for t in range(128, N, 64) {{
            Z[t :+ 64] = Z[t - {back} :+ 64] + W[t :+ 64]
          }}
        }}
        """,
        {"N": 512},
        given={"Z": numpy.zeros(512), "W": numpy.arange(512)},
    )


@pytest.mark.parametrize("start", ["(i / 2) * 40", "(i % 8 / 3) * 80", "(i >> 1) * 40", "TAB[i] * 40", "j * 40"])
def test_a_round_waits_where_how_far_it_moves_has_no_closed_form(start: str) -> None:
    """What reads just behind a stretch that the round before has stored, wherever that stretch then was."""
    agree(
        f"""
        @launch(64)
        kernel k(Z: tensor<f32>[N], TAB: tensor<i32>[8]) {{
          var j = 0
          for i in range(0, 8) {{
            Z[400 - {start} :+ 40] = Z[444 - {start} :+ 40] + 1.0
            if TAB[i] > 1 {{
              j = TAB[i] - 1
            }}
          }}
        }}
        """,
        {"N": 500},
        grid=(1, 1, 1),
        given={"Z": numpy.arange(500), "TAB": [0, 0, 1, 1, 2, 3, 4, 4]},
    )


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32"])
def test_a_product_of_one_row_beside_a_tile_of_many(dtype: str, transposed: bool) -> None:
    product = "dot_t(A[1 :+ 1, 0 :+ 64], A[2 :+ 64, 0 :+ 64])" if transposed else "dot(A[1 :+ 1, :], A[:, 0 :+ 64])"
    agree(
        f"""
        @launch(64)
        kernel k(A: tensor<{dtype}>[64, 64], B: tensor<{dtype}>[64, 64]) {{
          B[0 :+ 64, 0 :+ 64] = A[0 :+ 64, 0 :+ 64] + {product}
        }}
        """,
        grid=(1, 1, 1),
        given={"A": numpy.arange(64 * 64).reshape(64, 64) % 7},
    )


STRETCHES = {
    "a point": "X[0 : N] = X[0 : N] - X[0]",
    "a point that is added": "X[0 : N] += X[N - 1]",
    "points that decide": "X[0 : N] = where(X[0] > 0.0 && X[1] < 3.0, X[0 : N], X[1] * 2.0)",
    "the same cells by another name": "let m = N\n let v = X[0 : m]\n X[0 : N] = v * 2.0 - X[0 : N]",
    "beside a slice that moves": "for i in range(0, 3) {\n Y[0 :+ 100] = Y[3 :+ 100]\n X[0 : N] = X[0 : N] % 4.0\n }",
    "read around it": "for i in range(0, 3) {\n Y[0 :+ 100] = X[3 :+ 100]\n X[0 : N] = X[0 : N] + 1.0\n }",
    "another row": "for i in range(0, 3) {\n Z[i :+ 1, 0 : N] = Z[i + 1 :+ 1, 0 : N] + Z[i :+ 1, 0 : N] - Z[i, 0]\n }",
}


@pytest.mark.parametrize("body", STRETCHES.values(), ids=STRETCHES.keys())
def test_a_stretch_that_reads_of_its_own_tensor(body: str) -> None:
    agree(
        f"""
        @launch(64)
        kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], Z: tensor<f32>[4, N]) {{
          {body}
        }}
        """,
        {"N": 263},
        grid=(1, 1, 1),
        given={"X": numpy.arange(263) % 5, "Y": numpy.arange(263), "Z": numpy.arange(4 * 263).reshape(4, 263) % 9},
    )


MOVED = {
    "X[1 : N] = X[0 : N - 1]": "X[0 : N - 1]",
    "let v = X[0 : N - 1]\n X[1 : N] = v": "v",
    "X[0 : N] = gather(X, I[0 : N])": "X",
    "Z[0 :+ 4, 0 : N] = Z[0 :+ 4, 0 : N] - Z[0 :+ 4, 0 :+ 1]": "Z[0 :+ 4, 0 :+ 1]",
}


@pytest.mark.parametrize(("body", "at"), MOVED.items())
def test_a_stretch_that_reads_what_it_may_have_stored_is_refused(body: str, at: str) -> None:
    text = f"kernel k(X: tensor<f32>[N], I: tensor<i32>[N], Z: tensor<f32>[4, N]) {{\n {body}\n}}\n"
    module, unit = unit_of(text)
    (one,) = missing(unit.program)
    place = module.absolute(unit, one.span)
    assert "reads its own tensor at another place" in one.what
    assert text[place.start : place.end] == at


@pytest.mark.parametrize("flag", ["", "@tensorcore"])
@pytest.mark.parametrize("k", [0, 20])
def test_threads_wait_for_a_tile_behind_a_product_that_may_have_nothing_to_add(k: int, flag: str) -> None:
    agree(
        f"""
        {flag}
        @launch(64)
        kernel k(A: tensor<f32>[32, K], B: tensor<f32>[K, 32], C: tensor<f32>[32, 32], D: tensor<f32>[32, 32]) {{
          var t = C[0 :+ 32, 0 :+ 32]
          t[3 :+ 4, 0 :+ 32] = 5.0
          var acc: tile<f32>[32, 32] = 1.0
          acc += dot(A[0 :+ 32, 0 : K], B[0 : K, 0 :+ 32])
          D[0 :+ 32, 0 :+ 32] = transpose(t) + acc
        }}
        """,
        {"K": k},
        grid=(1, 1, 1),
        given={"A": numpy.ones((32, k)), "B": numpy.ones((k, 32))},
    )

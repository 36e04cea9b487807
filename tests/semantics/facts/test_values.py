"""Polynomials of index values: loops however they count, variables, division, merges."""

from __future__ import annotations

import pytest

from phobos.semantics import ir
from phobos.semantics.grid import show
from phobos.semantics.poly import Poly
from phobos.semantics.values import statements_of, values_of

from .cases import program


def stored(body: str, head: str = "kernel k(X: tensor<f32>[N], n: i32, m: i32)") -> list[str]:
    """The index of every store, in the language's spelling."""
    shared = program(f"{head} {{\n{body}\n}}\n")
    values = values_of(shared)
    return [
        show(values.poly(s.access.subs[0].index))
        for s in statements_of(shared.body)
        if isinstance(s, ir.Store) and isinstance(s.access.subs[0], ir.PointSub)
    ]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("let a = n + 1\nlet b = a * 2\nX[b - n] = 1.0", "n + 2"),
        ("X[(n + 1) * (n - 1)] = 1.0", "n * n - 1"),
        ("X[n / 3 * 3 + n % 3] = 1.0", "n"),
        ("X[(ctx.block.x * 8 + 3) / 8] = 1.0", "ctx.block.x"),
        ("X[(ctx.block.x * 8 + 3) % 8] = 1.0", "3"),
        ("X[ctx.block.x * n / n] = 1.0", "ctx.block.x"),
        ("X[N / 2 / 3] = 1.0", "(N) / (6)"),
        ("X[N * 4 / 8] = 1.0", "(N) / (2)"),
        ("X[7 / -2] = 1.0", "-3"),
        ("X[-7 % 4] = 1.0", "-3"),
        ("X[1 << 4] = 1.0", "16"),
        ("X[ctx.block.x & 0] = 1.0", "0"),
        ("X[tmin(n, n)] = 1.0", "n"),
        ("X[tmax(ctx.block.x, 0 - 1)] = 1.0", "ctx.block.x"),
        ("X[i64(n)] = 1.0", "n"),
        ("X[extent(X, 0) - 1] = 1.0", "N - 1"),
        ("for t in range(n, N, 4) {\nX[t] = 1.0\n}", "n + round * 4"),
        ("for r in range(0, N) {\nX[n + r * 4] = 1.0\n}", "n + round * 4"),
        ("var t = n\nfor r in range(0, N) {\nX[t] = 1.0\nt += 4\n}", "n + round * 4"),
        ("var t = n\nwhile t < N {\nX[t] = 1.0\nt = t + 2 + 2\n}", "n + round * 4"),
        ("var t = n\nwhile t < N {\nt += 4\nX[t] = 1.0\n}", "n + round * 4 + 4"),
        ("var t = n\nfor r in range(0, 5) {\nt += m\n}\nX[t] = 1.0", "m * 5 + n"),
        ("var t = 1\nif n > 0 {\nt = 2 - 1\n}\nX[t] = 1.0", "1"),
        ("var t = 1\nif n > 0 {\nt = 2\n}\nX[t] = 1.0", "?"),
        ("var t = 1\nif n > 0 {\nt = 2\nreturn\n}\nX[t] = 1.0", "1"),
        ("var t = 1\nfor r in range(0, n) {\nt = t * 2\n}\nX[t] = 1.0", "?"),
        ("var t = 0\nfor r in range(0, n) {\nif r == m {\ncontinue\n}\nt += 1\nX[t] = 1.0\n}", "? + 1"),
        ("var t = 0\nvar s = 0\nfor r in range(0, n) {\nt += 1\ns += 2\nX[s - 2 * t] = 1.0\n}", "0"),
    ],
)
def test_index(body: str, wanted: str) -> None:
    assert stored(body) == [wanted]


def test_a_parameter_of_the_name_of_an_extent_is_the_extent() -> None:
    assert stored("X[N - 1] = 1.0", "kernel k(N: i32, X: tensor<f32>[N])") == ["N - 1"]


def test_equal_loads_of_what_is_never_written_are_equal() -> None:
    head = "kernel k(X: tensor<f32>[N], I: tensor<i32>[N], n: i32)"
    assert stored("X[I[n] - I[n + 1 - 1]] = 1.0", head) == ["0"]
    assert stored("I[0] = 1\nX[I[n] - I[n]] = 1.0", head)[1] != "0"


def test_an_amount_that_changes_from_round_to_round_is_no_amount() -> None:
    body = "var a = 0\nvar b = 0\nfor r in range(0, n) {\nX[a] = 1.0\na += b\nb += 1\n}"
    assert stored(body) == ["?"]


def test_nested_counters() -> None:
    body = "var t = 0\nfor r in range(0, n) {\nfor s in range(0, 4) {\nt += 1\n}\nX[t] = 1.0\n}"
    assert stored(body) == ["round * 4 + 4"]


def test_a_loop_says_how_often_it_runs() -> None:
    shared = program("""kernel k(X: tensor<f32>[N], n: i32) {
  for a in range(1, 8, 3) {
    X[a] = 1.0
  }
  for b in range(n, n + 4) {
    X[b] = 1.0
  }
  for c in range(0, N, 2) {
    X[c] = 1.0
  }
}
""")
    trips = [loop.trips for loop in values_of(shared).loops.values()]
    assert trips[0] == Poly.of(3) and trips[1] == Poly.of(4) and trips[2] is None


def test_bounds_and_divisors() -> None:
    shared = program("""@aligned(N = 48)
kernel k(X: tensor<f32>[N], n: i32) {
  X[N / 4 + ctx.blocks.x] = 1.0
}
""")
    values = values_of(shared)
    n, blocks = Poly.atom("dim", "N"), Poly.atom("blocks", 0)
    assert values.divisor(n * 2 + 32) == 32
    assert values.divisor(Poly({})) == 0
    assert values.at_least(n + blocks + 3) == 4
    assert values.at_least(Poly.atom("param", "n")) is None


def test_a_while_reads_as_the_walk_it_is() -> None:
    shared = program("""@persistent
kernel k(X: tensor<f32>[N]) {
  var t = ctx.block.x * 64
  while N > t {
    X[t :+ 64] = 1.0
    t += ctx.blocks.x * 64
  }
}
""")
    (loop,) = values_of(shared).loops.values()
    assert loop.lo == Poly.atom("block", 0) * 64
    assert loop.hi == Poly.atom("dim", "N")
    assert loop.step == Poly.atom("blocks", 0) * 64


def test_dead_code_is_known() -> None:
    shared = program("""kernel k(X: tensor<f32>[N]) {
  if 1 > 2 {
    X[0] = 1.0
  }
  for t in range(3, 3) {
    X[1] = 1.0
  }
  return
  X[2] = 1.0
}
""")
    values = values_of(shared)
    stores = [s for s in statements_of(shared.body) if isinstance(s, ir.Store)]
    assert all(store in values.unreachable for store in stores) and len(stores) == 3

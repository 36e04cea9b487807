"""The grid as the text gives it: inferred axes, grid constants, useful work, caps."""

from __future__ import annotations

import pytest

from phobos.semantics.grid import (
    GridDisagrees,
    GridUnknown,
    blocks_at,
    cap_at,
    describe,
    evaluate,
    grid_of,
    show,
    useful_work_at,
)
from phobos.semantics.poly import Poly

from .cases import program


def uses(body: str, head: str = "kernel k(X: tensor<f32>[N], Y: tensor<f32>[M, N], n: i32)") -> list[list[str]]:
    axes = grid_of(program(f"{head} {{\n{body}\n}}\n")).axes
    return [[describe(use) for use in axis.uses] for axis in axes if axis.read]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("X[ctx.block.x * 64 :+ 64] = 1.0", ["ceil(N / 64)"]),
        ("let p = program_id(0)\nlet s = 64 * p\nX[s :+ 64] = 1.0", ["ceil(N / 64)"]),
        ("X[ctx.block.x] = 1.0", ["N"]),
        ("X[ctx.block.x :+ 1] = 1.0", ["N"]),
        ("let p = ctx.block.x\nif p * 64 < n {\nX[p * 64 :+ 64] = 1.0\n}", ["ceil(N / 64)"]),
        ("let p = ctx.block.x\nfor c in range(0, 64, 8) {\nX[p * 64 + c :+ 8] = 1.0\n}", ["ceil(N / 64)"]),
        ("let p = ctx.block.x\nX[p * 64 + 8 :+ 64] = 1.0", ["ceil((N - 8) / 64)"]),
        ("let p = ctx.block.x\nX[p * 64 :+ 64] = X[p * 32 :+ 64]", ["ceil(N / 64)"]),
        ("let p = ctx.block.x\nif p == 0 {\nX[p] = 1.0\n}\nX[p * 64 :+ 64] = 1.0", ["ceil(N / 64)"]),
        ("for t in range(ctx.block.x * 64, N, n * 64) {\nX[t :+ 64] = 1.0\n}", ["n"]),
        ("for r in range(0, 9) {\nlet t = (r * n + ctx.block.x) * 64\nX[t :+ 64] = 1.0\n}", ["n"]),
        ("X[ctx.block.x * 64 :+ 32] = 1.0", ["ceil(N / 64)"]),
        ("X[ctx.block.x * 64 :+ 65] = 1.0", []),
        ("X[ctx.block.x / 2] = 1.0", []),
        ("X[0] = f32(ctx.block.x)", []),
        ("for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {\nX[t :+ 64] = 1.0\n}", []),
    ],
)
def test_one_axis(body: str, wanted: list[str]) -> None:
    assert uses(body) == [wanted]


def test_a_function_stores_for_the_kernel() -> None:
    text = """fn put(A: tensor<f32>[K], at: i64) {
  A[at * 8 :+ 8] = 1.0
}
kernel k(X: tensor<f32>[N]) {
  put(X, ctx.block.x)
}
"""
    assert [describe(use) for use in grid_of(program(text)).axes[0].uses] == ["ceil(N / 8)"]


def test_two_axes_and_one_that_is_not_read() -> None:
    shared = program("""kernel k(Y: tensor<f32>[M, N]) {
  Y[ctx.block.y * 16 :+ 16, ctx.block.x * 32 :+ 32] = 1.0
}
""")
    assert blocks_at(shared, {"M": 33, "N": 64}) == (2, 3, 1)


def test_uses_must_agree_as_numbers() -> None:
    shared = program("""kernel k(X: tensor<f32>[N], P: tensor<f32>[S]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = 1.0
  P[p] = 1.0
}
""")
    assert blocks_at(shared, {"N": 256, "S": 4}) == (4, 1, 1)
    with pytest.raises(GridDisagrees):
        blocks_at(shared, {"N": 257, "S": 4})


def test_what_nobody_can_infer_says_why() -> None:
    shared = program("kernel k(X: tensor<f32>[N]) {\n  X[0] = f32(ctx.block.x)\n}\n")
    with pytest.raises(GridUnknown) as raised:
        blocks_at(shared, {"N": 4})
    assert "ctx.block.x" in str(raised.value)


PERSISTENT = (
    "@persistent\n@autotune(C in [8], T in [64])\n"
    "kernel k(X: tensor<f32>[N], P: tensor<f32>[S], n: i32) {{\n{}\n}}\n"
)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("for t in range(ctx.block.x * T, N, C * T) {\nX[t :+ T] = 1.0\n}", [("C", True)]),
        ("let b = ctx.block.x\nlet s = T * C\nfor t in range(T * b, N, s) {\nX[t :+ T] = 1.0\n}", [("C", True)]),
        ("var t = ctx.block.x * T\nwhile t < N {\nX[t :+ T] = 1.0\nt += C * T\n}", [("C", True)]),
        ("for r in range(0, n) {\nX[(ctx.block.x + r * C) * T :+ T] = 1.0\n}", [("C", False)]),
        ("for r in range(0, n) {\nX[T * ctx.block.x + r * C * T :+ T] = 1.0\n}", [("C", False)]),
        ("for t in range(ctx.block.x * T, N, ctx.blocks.x * T) {\nX[t :+ T] = 1.0\n}", []),
        ("for t in range(ctx.block.x / 2 * T, N, C * T) {\nX[t :+ T] = 1.0\n}", []),
        ("for t in range(ctx.block.x * T, N, 8 * T) {\nX[t :+ T] = 1.0\n}", []),
    ],
)
def test_grid_constants(body: str, wanted: list[tuple[str, bool]]) -> None:
    found = grid_of(program(PERSISTENT.format(body))).constants
    assert [(one.constant.name, one.stride_form) for one in found] == wanted


def test_an_ordinary_kernel_has_no_grid_constant() -> None:
    text = PERSISTENT.format("for t in range(ctx.block.x * T, N, C * T) {\nX[t :+ T] = 1.0\n}")
    shared = program(text.replace("@persistent\n", ""))
    assert grid_of(shared).constants == ()
    assert blocks_at(shared, {"N": 999}) == (8, 1, 1)


@pytest.mark.parametrize(
    ("body", "work"),
    [
        ("for t in range(ctx.block.x * T, N, ctx.blocks.x * T) {\nX[t :+ T] = 1.0\n}", 4),
        ("for t in range(ctx.block.x * T, 32, ctx.blocks.x * T) {\nX[t :+ T] = 1.0\n}", 1),
        ("var t = ctx.block.x * T\nwhile t < N {\nX[t :+ T] = 1.0\nt += ctx.blocks.x * T\n}", 4),
        (
            "P[ctx.block.x] = 1.0\nfor t in range(ctx.block.x * T, N, ctx.blocks.x * T) {\nX[t :+ T] = 1.0\n}",
            4,
        ),
        ("for v in range(ctx.block.x, N / T * 2, ctx.blocks.x) {\nX[v / 2 * T :+ T] = 1.0\n}", 6),
        (
            "for t in range(ctx.block.x, N, ctx.blocks.x) {\nX[t] = 1.0\n}\n"
            "for t in range(ctx.block.x * T, N, ctx.blocks.x * T) {\nX[t :+ T] = 1.0\n}",
            200,
        ),
        ("if ctx.block.x == 0 {\nX[0] = 1.0\n}", None),
        ("X[ctx.block.x * T :+ T] = 1.0", None),
        ("for t in range(ctx.block.x * T, N, C * T) {\nX[t :+ T] = 1.0\n}", None),
        (
            "for t in range(ctx.block.x * T, N, ctx.blocks.x * T) {\nX[t :+ T] = f32(ctx.block.x)\n}",
            None,
        ),
    ],
)
def test_useful_work(body: str, work: int | None) -> None:
    assert useful_work_at(program(PERSISTENT.format(body)), {"N": 200, "S": 9, "n": 1}) == work


@pytest.mark.parametrize(
    ("sizes", "work"), [({"N": 200, "S": 900}, 15), ({"N": 200}, None), ({"S": 900}, None), ({}, None)]
)
def test_useful_work_is_that_of_all_loops_or_not_known(sizes: dict[str, int], work: int | None) -> None:
    loop = "for t in range(ctx.block.x * T, {0}, ctx.blocks.x * T) {{\n{1}[t :+ T] = 1.0\n}}"
    both = loop.format("N", "X") + "\n" + loop.format("S", "P")
    assert useful_work_at(program(PERSISTENT.format(both)), {**sizes, "T": 64}) == work


@pytest.mark.parametrize(
    ("body", "cap"),
    [
        ("P[ctx.block.x] = 1.0", 9),
        ("let p = ctx.block.x\nP[p :+ 1] = 1.0", 9),
        ("X[0] = P[ctx.block.x]", 9),
        ("let v = P[ctx.block.x :+ 1]\nX[0 :+ 1] = v", None),
        ("if ctx.block.x < n {\nP[ctx.block.x] = 1.0\n}", None),
        ("if ctx.block.x > n {\nP[ctx.block.x] = 1.0\n}", 9),
        ("P[ctx.block.x * 2] = 1.0", None),
        ("P[ctx.block.x] = 1.0\nX[ctx.block.x] = 1.0", 9),
    ],
)
def test_caps_by_cells(body: str, cap: int | None) -> None:
    found = cap_at(program(PERSISTENT.format(body)), {"N": 200, "S": 9, "n": 1})
    assert (found[0] if found else None) == cap


def test_evaluate_truncates_as_the_language_does() -> None:
    shared = program("kernel k(X: tensor<f32>[N], n: i32) {\n  X[n / 4 * 4 + n % 4] = 1.0\n  X[(n - 9) / 4] = 1.0\n}\n")
    from phobos.semantics.masks import accesses_of
    from phobos.semantics.values import values_of

    values = values_of(shared)
    first, second = (values.poly(access.subs[0].index) for access in accesses_of(shared))
    assert first == Poly.atom("param", "n")
    assert evaluate(second, {"n": 2}) == -1
    assert evaluate(second, {}) is None
    assert show(Poly.atom("dim", "N") * 2 - 1) == "N * 2 - 1"

"""What a kernel leaves to its launch, the launch decides: of every kind that some kernel of ours has, a launch that
breaks it is refused before anything has run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

import phobos
from phobos.errors import LaunchError
from phobos.semantics.module import analyse
from phobos.semantics.obligations import launch_obligations_of

ROOT = Path(__file__).resolve().parents[2]
TEXT = """
@aligned(N = 64)
kernel promised(X: tensor<f32>[N]) {
  X[ctx.block.x * 64 :+ 64] = 1.0
}
@persistent
kernel staged(X: tensor<f32>[M], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 8, M, ctx.blocks.x * 8) { X[t :+ 8] = 1.0 }
  grid_barrier(BAR)
}
@persistent
kernel in_parts(X: tensor<f32>[M], PART: tensor<f32>[4], BAR: tensor<i32>[2]) {
  PART[ctx.block.x] = X[ctx.block.x]
  grid_barrier(BAR)
  if ctx.block.x == 0 { X[0] = PART[ctx.blocks.x - 1] }
}
@persistent
@autotune(BLOCKS in [8])
kernel counted(X: tensor<f32>[M], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 8, M, BLOCKS * 8) { X[t :+ 8] = 1.0 }
  grid_barrier(BAR)
}
kernel copied(X: tensor<f32>[M], Y: tensor<f32>[M]) {
  Y[ctx.block.x * 8 :+ 8] = X[ctx.block.x * 8 + 1 :+ 8]
}
"""


def ones(length: int, kind: Any = numpy.float32) -> Any:
    return numpy.ones(length, kind)


X = ones(64)
BROKEN: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "aligned": ("promised", (ones(100),), {}, "100 is not a whole number of 64"),
    "barrier-tensor": ("staged", (X, ones(2, numpy.int32)), {}, "`BAR` starts with 1, its count must be 0"),
    "extent-agrees": ("copied", (X, ones(63)), {}, "`M` is 64"),
    "grid-at-most": ("in_parts", (X, ones(4)), {"grid": 5}, "at most 4"),
    "grid-constant": ("counted", (X,), {"grid": 4, "constants": {"BLOCKS": 5}}, "BLOCKS"),
    "no-overlap": ("copied", (X, X), {}, "share memory"),
    "one-dimensional-grid": ("staged", (X,), {"grid": (2, 2)}, "one dimension"),
    "resident": ("staged", (X,), {"grid": 9, "resident": 8}, "resident"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_launch_that_breaks_it_is_refused(kind: str) -> None:
    name, arguments, options, said = BROKEN[kind]
    kernel = phobos.kernel(TEXT, name)
    left = launch_obligations_of(kernel.analysed()[1].program)
    assert kind in {one.kind for one in left}
    before = [array.copy() for array in arguments]
    for launch in (kernel.plan, kernel):
        with pytest.raises(LaunchError, match=said):
            launch(*arguments, **options)
    for array, was in zip(arguments, before, strict=True):
        assert (array == was).all()


def test_every_kind_that_is_left_to_a_launch_is_broken_above() -> None:
    kinds = {
        one.kind
        for path in [*(ROOT / "tests/corpus").glob("*.ph"), *(ROOT / "examples").glob("*.ph")]
        for unit in analyse(str(path), path.read_text("utf-8")).kernels.values()
        for one in launch_obligations_of(unit.program)
    }
    assert kinds == set(BROKEN)


@pytest.mark.parametrize("at", [0, 62])
def test_a_barrier_tensor_shares_memory_with_no_other_whatever_its_type(at: int) -> None:
    x = numpy.zeros(64, numpy.float32)
    kernel = phobos.kernel(TEXT, "staged")
    with pytest.raises(LaunchError, match="`BAR` shares memory with `X`, and must be an array of its own") as refused:
        kernel(x, x[at : at + 2].view(numpy.int32))
    assert refused.value.kind == "bad-barrier-tensor" and not x.any()


def test_halves_of_the_rows_of_one_matrix_do_not_overlap_and_shifted_ones_do() -> None:
    text = """
kernel halves(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  Y[ctx.block.x :+ 1, 0 :+ 32] = X[ctx.block.x :+ 1, 0 :+ 32] + X[0 :+ 1, 0 :+ 32]
}
"""
    whole = numpy.ones((8, 64), numpy.float32)
    kernel = phobos.kernel(text)
    kernel(whole[:, :32], whole[:, 32:])
    assert (whole[:, 32:] == 2).all() and (whole[:, :32] == 1).all()
    for other in (whole[:, 1:33], whole[1:, 31:63], whole[:1, 31:63]):
        with pytest.raises(LaunchError, match="share memory"):
            kernel.plan(whole[: len(other), :32], other)


def test_a_barrier_tensor_that_is_left_out_has_the_extent_that_its_symbol_is() -> None:
    text = TEXT[TEXT.index("@persistent") :].replace("BAR: tensor<i32>[2]", "BAR: tensor<i32>[B, 1]")
    text = text.replace("X[t :+ 8] = 1.0 }", "X[t :+ 8] = f32(i32(B)) }", 1)
    x = numpy.zeros(64, numpy.float32)
    phobos.kernel(text, "staged")(x)
    assert (x == 2).all()


@pytest.mark.parametrize(("step", "refused"), [(16, False), (20, False), (18, True), (12, True), (-16, True)])
def test_rows_may_lie_apart_by_whole_cells_and_not_over_each_other(step: int, refused: bool) -> None:
    kernel = phobos.kernel("kernel k(X: tensor<f32>[M, N]) {\n  X[ctx.block.x :+ 1, 0 :+ 4] = 1.0\n}")
    cells = numpy.zeros(100, numpy.uint8)[40:].view(numpy.float32)
    rows = numpy.lib.stride_tricks.as_strided(cells, (3, 4), (step, 4))
    if not refused:
        kernel(rows)
        assert (rows == 1).all()
        return
    with pytest.raises(LaunchError, match="not row-major"):
        kernel.plan(rows)

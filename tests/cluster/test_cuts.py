"""Along which extents a kernel can be cut: shards together are the whole run, bit for bit; or the reason why not."""

from __future__ import annotations

import re

import ml_dtypes
import numpy
import pytest

from phobos.errors import LaunchError
from phobos.runtime.cluster.pieces import pieces_of
from phobos.runtime.cluster.shards import Job, _shapes, cut_at, run
from phobos.runtime.kernel import kernel
from phobos.runtime.options import LaunchOptions
from phobos.semantics.shards import Cut, Tied, cuts_of

SAXPY = """
@autotune(T in [64])
kernel saxpy(X: tensor<f32>[N], Y: tensor<f32>[N], a: f32) {
  let s = ctx.block.x * T
  Y[s :+ T] = X[s :+ T] * a + Y[s :+ T]
}
"""
GEMM = """
@autotune(T in [16])
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  let row = ctx.block.x * T
  let column = ctx.block.y * T
  var acc: tile<f32>[T, T] = 0.0
  for k in range(0, K, 8) {
    acc += dot(A[row :+ T, k :+ 8], B[k :+ 8, column :+ T])
  }
  C[row :+ T, column :+ T] = acc
}
"""
TURNED = """
kernel turned(X: tensor<f32>[M, N], Y: tensor<f32>[N, M]) {
  let r = ctx.block.x * 8
  let c = ctx.block.y * 16
  Y[c :+ 16, r :+ 8] = transpose(X[r :+ 8, c :+ 16])
}
"""
STENCIL = """
kernel stencil(X: tensor<f32>[N, M], Y: tensor<f32>[N, M]) {
  let s = ctx.block.x * 8
  let c = ctx.block.y * 16
  Y[s :+ 8, c :+ 16] = (X[s - 1 :+ 8, c :+ 16] + X[s :+ 8, c :+ 16]) * 0.5 + X[s + 3 :+ 8, c :+ 16]
}
"""
WIDE = """
kernel wide(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let s = ctx.block.x * 4
  var sum: tile<f32>[4] = 0.0
  for k in range(0, 5) {
    sum += X[s - 9 + k * 4 :+ 4]
  }
  Y[s :+ 4] = sum
}
"""
GUARDED = """
kernel guarded(X: tensor<f32>[N], Y: tensor<f32>[N], W: tensor<f32>[K]) {
  let s = ctx.block.x * 8
  var left = W[0]
  if s > 0 { left = X[s - 1] }
  var right = W[1]
  if s + 8 < N { right = X[s + 8] }
  if ctx.block.x == 0 { left = left + W[2] }
  if !(s + 24 <= N) { right = right * 2.0 }
  Y[s :+ 8] = X[s :+ 8] + left + right
}
"""
POINTS = """
kernel points(X: tensor<f32>[N, M], Y: tensor<f32>[N]) {
  let r = ctx.block.x
  var sum = 0.0
  for c in range(0, M) { sum += X[r, c] }
  Y[r] = sum
}
"""
THIRDS = """
kernel thirds(X: tensor<i32>[N], Y: tensor<i32>[N], I: tensor<i32>[K], W: tensor<i32>[V]) {
  let s = ctx.block.x * 8
  Y[s :+ 8] = (X[s :+ 8] + X[s + 1 :+ 8]) / 3 + W[0] % 2
}
"""
INNER = """
fn scaled(v: f32, w: f32) -> f32 { return v * w + 1.0 }
kernel inner(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let first = ctx.block.x * 32
  for s in range(first, first + 32, 8) {
    var at = s
    if X[0 + first] > 0.5 { at = s }
    Y[at :+ 8] = X[s :+ 8] * scaled(2.0, 3.0)
  }
}
"""
HALVES = SAXPY.replace("f32>", "bf16>")
PROMISED = """
@aligned(N = 24)
kernel promised(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let s = ctx.block.x * 8
  Y[s :+ 8] = X[s :+ 8] + X[s + 1 :+ 8]
}
"""
SELECTED = """
kernel selected(X: tensor<f32>[N], I: tensor<i32>[N, K], W: tensor<f32>[V], Y: tensor<f32>[N, K]) {
  let s = ctx.block.x * 8
  Y[s :+ 8, 0 :+ 4] = gather(W, I[s :+ 8, 0 :+ 4])
}
"""


def refused(body: str, head: str = "X: tensor<f32>[N], Y: tensor<f32>[N]", before: str = "") -> str:
    return f"{before}\nkernel k({head}) {{\n{body}\n}}"


WHOLE = {  # text, extents, dimension, tile, below, above
    "saxpy": (SAXPY, {"N": 1000}, "N", 64, 0, 0),
    "rows of a product": (GEMM, {"M": 70, "N": 40, "K": 21}, "M", 16, 0, 0),
    "columns of a product": (GEMM, {"M": 40, "N": 70, "K": 21}, "N", 16, 0, 0),
    "turned, by rows": (TURNED, {"M": 45, "N": 40}, "M", 8, 0, 0),
    "turned, by columns": (TURNED, {"M": 40, "N": 100}, "N", 16, 0, 0),
    "neighbours": (STENCIL, {"N": 77, "M": 20}, "N", 8, 1, 3),
    "the axis without neighbours": (STENCIL, {"N": 20, "M": 77}, "M", 16, 0, 0),
    "neighbours beyond the next tile": (WIDE, {"N": 61}, "N", 4, 9, 7),
    "edges": (GUARDED, {"N": 83, "K": 3}, "N", 8, 8, 16),
    "points": (POINTS, {"N": 30, "M": 5}, "N", 1, 0, 0),
    "neighbours, divided by what is no data": (THIRDS, {"N": 83, "K": 2, "V": 9}, "N", 8, 0, 1),
    "a loop inside the tile": (INNER, {"N": 300}, "N", 32, 0, 0),
    "bf16": (HALVES, {"N": 333}, "N", 64, 0, 0),
    "a promise": (PROMISED, {"N": 240}, "N", 8, 0, 1),
    "a part of each tile": (
        refused("let s = ctx.block.x * 8\nY[s + 1 :+ 4] = X[s :+ 4] * 2.0"),
        {"N": 45},
        "N",
        8,
        0,
        0,
    ),
    "a table that stays whole": (SELECTED, {"N": 50, "K": 4, "V": 9}, "N", 8, 0, 0),
}
TYPES = {"f32": numpy.float32, "bf16": ml_dtypes.bfloat16, "i32": numpy.int32}


def arguments(text: str, sizes: dict[str, int]) -> tuple[dict[str, numpy.ndarray], dict[str, float]]:
    program = kernel(text).analysed()[1].program
    generator = numpy.random.default_rng(7)
    arrays = {}
    for tensor in program.tensors.values():
        shape = [sizes[extent.name] for extent in tensor.extents]
        drawn = generator.random(shape) if tensor.dtype != "i32" else generator.integers(0, 9, shape)
        arrays[tensor.name] = drawn.astype(TYPES[tensor.dtype])
    return arrays, {"a": 2.5} if "a" in program.params else {}


@pytest.mark.parametrize("case", WHOLE)
@pytest.mark.parametrize("parts", [1, 2, 3, 100])
def test_shards_are_the_whole(case: str, parts: int) -> None:
    text, sizes, dim, tile, below, above = WHOLE[case]
    arrays, numbers = arguments(text, sizes)
    made = kernel(text)
    bound = made.bound((), {**_shapes(arrays), **numbers}, {})
    cut = cut_at(bound, dim)
    assert (cut.tile, cut.below, cut.above) == (tile, below, above)
    wanted = {name: array.copy() for name, array in arrays.items()}
    made.reference(**wanted, **numbers)
    pieces = pieces_of(cut, sizes[dim], parts)
    assert sum(pieces.sizes) == sizes[dim] and len(pieces.sizes) <= parts
    halves = tuple(name for name, array in arrays.items() if array.dtype == ml_dtypes.bfloat16)
    job = Job(made.path, text, made.name, LaunchOptions(), "cpu", numbers, cut, pieces, halves)
    found: dict[str, list[numpy.ndarray]] = {name: [] for name in cut.stored}
    for at, start in enumerate(pieces.starts()):
        slices = {}
        for name, array in arrays.items():
            axis = cut.axes.get(name)
            low, high = max(0, start - pieces.below), start + pieces.sizes[at] + pieces.above
            where = tuple(slice(low, high) if i == axis else slice(None) for i in range(array.ndim))
            slices[name] = array[where].copy()
        for name, cells in zip(cut.stored, run(job, at, list(slices), *slices.values())):
            found[name].append(cells.view(arrays[name].dtype))
    for name, cells in found.items():
        together = numpy.concatenate(cells, axis=cut.axes[name])
        assert together.tobytes() == wanted[name].tobytes(), (name, pieces)


TIED = {
    "a barrier": (
        refused("for t in range(ctx.block.x * 8, N, ctx.blocks.x * 8) { Y[t :+ 8] = X[t :+ 8] }\ngrid_barrier(B)",
                "X: tensor<f32>[N], Y: tensor<f32>[N], B: tensor<i32>[2]", "@persistent"), "a barrier makes"),
    "persistent": (
        refused("for t in range(ctx.block.x * 8, N, ctx.blocks.x * 8) { Y[t :+ 8] = X[t :+ 8] }", before="@persistent"),
        "`@persistent`: which cells a block takes"),
    "an atomic": (
        refused("let s = ctx.block.x * 8\nY[s :+ 8] = X[s :+ 8]\natomic_add(T, 0, 1)",
                "X: tensor<f32>[N], Y: tensor<f32>[N], T: tensor<i32>[1]"), "an atomic on `T`"),
    "the size of the grid": (
        refused("let s = ctx.block.x * 8\nif ctx.block.x + 1 == ctx.blocks.x { Y[s :+ 8] = X[s :+ 8] }"),
        "is how many blocks the whole grid has"),
    "the place is stored": (
        refused("let s = ctx.block.x * 8\nY[s :+ 8] = X[s :+ 8] + f32(s)"), "where along `N` the block is"),
    "the place is stored, as a tile": (
        refused("let s = ctx.block.x * 8\nY[0 :+ 1, s :+ 8] = f32(iota(8) + s)", "Y: tensor<f32>[M, N]"),
        "where along `N` the block is"),
    "every other block": (
        refused("let s = ctx.block.x * 8\nif ctx.block.x % 2 == 0 { Y[s :+ 8] = X[s :+ 8] }"), "this condition"),
    "every other block, by a variable": (
        refused("let s = ctx.block.x * 8\nvar f = 1.0\nlet odd = ctx.block.x % 2\nif odd == 1 { f = 2.0 }\n"
                "Y[s :+ 8] = X[s :+ 8] * f"), "this condition"),
    "the place in a product that a loop takes": (
        refused("let s = ctx.block.x * 8\nvar i = 1\nfor k in range(0, 3) { i *= s + 1 }\n"
                "Y[s :+ 8] = X[s :+ 8] * f32(i)"),
        "where along `N` the block is"),
    "the extent as a number": (
        refused("let s = ctx.block.x * 8\nY[s :+ 8] = X[s :+ 8] / f32(N)"), "where along `N` the block is"),
    "half of the extent": (
        refused("let s = ctx.block.x * 8\nif s * 2 < N { Y[s :+ 8] = X[s :+ 8] }"), "this condition"),
    "from the end": (
        refused("let s = ctx.block.x * 8\nY[s :+ 8] = X[N - 8 - s :+ 8]"), "does not move along `N`"),
    "a fixed place": (
        refused("let s = ctx.block.x * 8\nY[s :+ 8] = X[s :+ 8] + X[0 :+ 1]"), "is at one place of `N`"),
    "a place from data": (
        refused("let s = ctx.block.x * 8\nlet j = I[ctx.block.x * 8]\nY[s :+ 8] = X[j :+ 8]",
                "X: tensor<f32>[N], Y: tensor<f32>[N], I: tensor<i32>[N]"), "is at one place of `N`|does not move"),
    "twice as far": (
        refused("let s = ctx.block.x * 8\nY[s :+ 8] = X[s * 2 :+ 8]"), "does not move along `N`"),
    "gathered": (
        refused("let s = ctx.block.x * 8\nY[s :+ 8] = gather(X, I[s :+ 8])",
                "X: tensor<f32>[N], Y: tensor<f32>[N], I: tensor<i32>[N]"), "`gather` may read `X` anywhere"),
    "a sum over it": (
        refused("let r = ctx.block.x\nvar sum = 0.0\nfor t in range(0, N) { sum += X[r, t] }\nY[r] = sum",
                "X: tensor<f32>[M, N], Y: tensor<f32>[M]"), "walks it in a loop inside each block"),
    "a sum by the way": (
        refused("let s = ctx.block.x * 8\nvar sum = 0.0\nfor t in range(0, N) { sum += X[t] }\nY[s :+ 8] = sum"),
        "walks `N` in a loop|the end of this loop"),
    "partial sums": (
        refused("let s = ctx.block.x * 8\nP[ctx.block.x] = X[s]\nY[s :+ 8] = X[s :+ 8]",
                "X: tensor<f32>[N], Y: tensor<f32>[N], P: tensor<f32>[K]"), "axis 0 of `P`, which is not cut"),
    "a flag of all": (
        refused("let s = ctx.block.x * 8\nF[0] = 1.0\nY[s :+ 8] = X[s :+ 8]",
                "X: tensor<f32>[N], Y: tensor<f32>[N], F: tensor<f32>[1]"), "`F` is written and has no axis `N`"),
    "a square": (
        refused("let r = ctx.block.x * 8\nlet c = ctx.block.y * 8\nX[r :+ 8, c :+ 8] = X[r :+ 8, c :+ 8] * 2.0",
                "X: tensor<f32>[N, N]"), "`X` has `N` twice"),
    "in place, with neighbours": (
        refused("let s = ctx.block.x * 8\nX[s :+ 8] = X[s + 1 :+ 8]", "X: tensor<f32>[N]"), "not proved to stay apart"),
    "more than its own": (
        refused("let s = ctx.block.x * 8\nY[s :+ 9] = X[s :+ 9]"), "outside the 8|not proved|blocks, not one for"),
    "as far as another extent": (
        refused("let s = ctx.block.x * 8\nY[s :+ 8] = X[s + M :+ 8] + W[0]",
                "X: tensor<f32>[N], Y: tensor<f32>[N], W: tensor<f32>[M]"), "at a distance that is not known"),
    "another number of blocks": (
        refused("let s = ctx.block.x * 8\nY[s + 1 :+ 8] = X[s :+ 8]"), "not one for each 8 cells|outside the 8"),
    "a neighbour that is divided by": (
        refused("let s = ctx.block.x * 8\nY[s :+ 8] = 100 / (X[s :+ 8] + X[s + 1 :+ 8])",
                "X: tensor<i32>[N], Y: tensor<i32>[N]"), "nothing proves that this divisor is not 0: where"),
    "an index that is a neighbour": (
        refused("let s = ctx.block.x * 8\nvar at = X[s]\nif s + 8 < N { at += X[s + 8] }\nY[s :+ 8] = W[at - 1]",
                "X: tensor<i32>[N], Y: tensor<f32>[N], W: tensor<f32>[M]"), "nothing proves that this index is inside"),
    "a loop until a neighbour is large": (
        refused("let s = ctx.block.x * 8\nvar at = 0.0\nif s + 8 < N { at = X[s + 8] }\n"
                "while at < 8.0 { at = at * 2.0 }\nY[s :+ 8] = X[s :+ 8] * at"), "nothing proves that this loop ends"),
    "a while that walks it": (
        refused("let s = ctx.block.x * 8\nvar i = s\nvar f = 0.0\nwhile i < N { f += 1.0; i += 8 }\n"
                "Y[s :+ 8] = X[s :+ 8] * f"), "condition|loop"),
}  # fmt: skip


@pytest.mark.parametrize("case", TIED)
def test_what_ties_shards_together_is_named(case: str) -> None:
    text, words = TIED[case]
    made = kernel(text)
    module, unit = made.analysed()
    assert not [problem for problem in unit.program.problems if problem.severity == "error"], unit.program.problems
    found = cuts_of(unit.program)["N"]
    assert isinstance(found, Tied), found
    assert re.search(words, found.reason), found.reason
    place = module.absolute(unit, found.span)
    assert 0 <= place.start < place.end <= len(text)


def test_the_refusal_has_a_place_and_says_what_can_be_cut() -> None:
    text = GEMM
    arrays, numbers = arguments(text, {"M": 32, "N": 32, "K": 16})
    bound = kernel(text).bound((), {**_shapes(arrays), **numbers}, {})
    with pytest.raises(
        LaunchError, match=r"<text>:8: `gemm` cannot be cut along `K`: .*it can be cut along `M` or `N`"
    ):
        cut_at(bound, "K")
    with pytest.raises(LaunchError, match=r"has no extent `Q` \(it has M, K, N\)"):
        cut_at(bound, "Q")


@pytest.mark.parametrize("extent, parts, sizes", [
    (1000, 2, (512, 488)), (1000, 3, (384, 320, 296)), (64, 5, (64,)), (65, 5, (64, 1)), (0, 3, (0,)),
    (1 << 20, 1, (1 << 20,)),
])  # fmt: skip
def test_pieces(extent: int, parts: int, sizes: tuple[int, ...]) -> None:
    cut = Cut("N", 0, 64, 64, 0, 0, {"X": 0}, ("X",))
    assert pieces_of(cut, extent, parts).sizes == sizes


def test_no_shard_is_less_than_what_its_neighbour_reads() -> None:
    cut = Cut("N", 0, 8, 24, 1, 50, {"X": 0}, ("X",))
    pieces = pieces_of(cut, 24 * 9 + 5, 9)
    assert (pieces.below, pieces.above) == (24, 72)
    assert all(size >= 72 for size in pieces.sizes) and all(size % 24 == 0 for size in pieces.sizes[:-1])

"""Fused kernels on a GPU: phases shared out each by itself against one partition of all, and against captured graphs.

`python benchmarks/fusions.py [--json FILE]`. Times are medians of replays of a captured graph, in microseconds; every
result is compared with the kernels one after another, bit for bit, before it is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cupy
import numpy
from gpu_common import finish, micros, table

import phobos
from phobos.codegen import cache
from phobos.runtime.cuda import driver, launch
from phobos.runtime.cuda.preparing import Ready, prepared
from phobos.runtime.cuda.streams import stream_of
from phobos.runtime.kernel import Kernels
from phobos.runtime.options import LaunchOptions

TILES = """
kernel first(X: tensor<f32>[P, 4096], Y: tensor<f32>[P, 4096], rounds: i32) {
    let p = ctx.block.x
    var t: tile<f32>[1, 4096] = X[p :+ 1, 0 :+ 4096]
    for r in range(0, rounds) { t = t * 0.999 + 0.001 }
    Y[p :+ 1, 0 :+ 4096] = t
}
kernel second(Y: tensor<f32>[P, 4096], Z: tensor<f32>[Q, 4096], rounds: i32) {
    let q = ctx.block.x
    var t: tile<f32>[1, 4096] = Y[q :+ 1, 0 :+ 4096]
    for r in range(0, rounds) { t = t * 0.998 + 0.002 }
    Z[q :+ 1, 0 :+ 4096] = t
}
"""

CHAIN = """
@aligned(N = 1024)
kernel scale(X: tensor<f32>[N], A: tensor<f32>[N]) {
    let p = ctx.block.x
    A[p * 1024 :+ 1024] = X[p * 1024 :+ 1024] * 1.5
}
@aligned(N = 1024)
kernel shift(A: tensor<f32>[N], B: tensor<f32>[N]) {
    let p = ctx.block.x
    B[p * 1024 :+ 1024] = A[p * 1024 :+ 1024] + 0.25
}
@aligned(N = 1024)
kernel bend(B: tensor<f32>[N], C: tensor<f32>[N]) {
    let p = ctx.block.x
    C[p * 1024 :+ 1024] = tanh(B[p * 1024 :+ 1024])
}
@aligned(N = 1024)
kernel blend(X: tensor<f32>[N], C: tensor<f32>[N], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 1024 :+ 1024] = X[p * 1024 :+ 1024] + C[p * 1024 :+ 1024]
}
"""

SOFTMAX = """
@aligned(C = 1024)
kernel largest(X: tensor<f32>[R, C], M: tensor<f32>[R, 1]) {
    let row = ctx.block.x
    var m: tile<f32>[1, 1024] = X[row :+ 1, 0 :+ 1024]
    for c in range(1024, C, 1024) { m = tmax(m, X[row :+ 1, c :+ 1024]) }
    M[row :+ 1, 0 :+ 1] = rowmax(m)
}
@aligned(C = 1024)
kernel total(X: tensor<f32>[R, C], M: tensor<f32>[R, 1], S: tensor<f32>[R, 1]) {
    let row = ctx.block.x
    var s: tile<f32>[1, 1024] = exp(X[row :+ 1, 0 :+ 1024] - M[row :+ 1, 0 :+ 1])
    for c in range(1024, C, 1024) { s += exp(X[row :+ 1, c :+ 1024] - M[row :+ 1, 0 :+ 1]) }
    S[row :+ 1, 0 :+ 1] = rowsum(s)
}
@aligned(C = 1024)
kernel divide(X: tensor<f32>[R, C], M: tensor<f32>[R, 1], S: tensor<f32>[R, 1], Y: tensor<f32>[R, C]) {
    let row = ctx.block.y
    let c = ctx.block.x * 1024
    Y[row :+ 1, c :+ 1024] = exp(X[row :+ 1, c :+ 1024] - M[row :+ 1, 0 :+ 1]) / S[row :+ 1, 0 :+ 1]
}
"""

OWN = """const unsigned each = blocks / gridDim.x + (blocks % gridDim.x != 0);
    const unsigned first = min(blockIdx.x * each, blocks), last = min(first + each, blocks);"""


def main() -> None:
    tables, figures = [], {}
    for part in (partition_table, softmax_table, chain_table):
        title, head, rows = part()
        tables.append(table(title, head, rows))
        figures[title] = {"head": head, "rows": rows}
    finish("Fused kernels", tables, figures)


# --- partitions -----------------------------------------------------------------------------------------------


def partition_table() -> tuple[str, list[str], list[list[object]]]:
    kernels = Kernels("tiles.ph", TILES)
    fused = phobos.fuse(kernels.first, kernels.second)
    rows: list[list[object]] = []
    for p, q in ((132, 132), (1000, 50), (512, 64)):
        given: dict[str, Any] = {
            "X": cupy.random.default_rng(0).random((p, 4096), dtype=numpy.float32),
            "Y": cupy.zeros((p, 4096), numpy.float32),
            "Z": cupy.zeros((q, 4096), numpy.float32),
            "rounds": 400,
        }

        def apart(given: dict[str, Any] = given) -> None:
            kernels.first(given["X"], given["Y"], given["rounds"])
            kernels.second(given["Y"], given["Z"], given["rounds"])

        apart()
        want = given["Z"].copy()
        graph = micros(apart)
        found = [graph]
        for schedule in ("persistent-interleaved", "persistent-blocked", "one partition"):
            work = one_partition(fused, given) if schedule == "one partition" else launcher(fused, given, schedule)
            given["Z"].fill(0)
            work()
            launch.synchronize()
            assert bool((given["Z"] == want).all()), schedule
            found.append(micros(work))
        tiles, share = -(-p // 132) + -(-q // 132), -(-(p + q) // 132)
        rows.append([f"{p} and {q}", *found, found[3] / found[1], tiles, min(share, p) + min(share, q)])
    head = [
        "tiles in two phases", "graph of two kernels", "interleaved", "blocked", "one partition (blocked)",
        "one partition / interleaved", "tiles in a row, per phase", "tiles in a row, one partition",
    ]  # fmt: skip
    return "132 workers, one tile of about 10 us each: every phase shared out by itself, and all at once", head, rows


def launcher(kernel: phobos.Kernel, given: dict[str, Any], schedule: str, grid: int | None = 132) -> Callable[[], None]:
    return lambda: kernel(**given, schedule=schedule, grid=grid)


def one_partition(kernel: phobos.Kernel, given: dict[str, Any]) -> Callable[[], None]:
    """The blocked schedule with one partition over the ids of both phases: its loops written anew."""
    options = LaunchOptions(schedule="persistent-blocked", grid=132)
    ready = prepared(kernel, kernel.bound((), given, {}), options)
    emitted = ready.loaded.compiled.emitted
    parts = emitted.text.split(OWN)
    assert len(parts) == 3, "the loops of the blocked schedule look otherwise"
    text = parts[0]
    for before, after in zip(("0u", "grid0_x"), parts[1:], strict=True):
        text += f"""const unsigned all = grid0_x + grid1_x, share = (all + gridDim.x - 1) / gridDim.x;
    const unsigned from = min(blockIdx.x * share, all), to = min(from + share, all), start = {before};
    const unsigned first = min(from > start ? from - start : 0u, blocks);
    const unsigned last = min(to > start ? to - start : 0u, blocks);{after}"""
    made = cache.compiled(text, "one_partition.cu", ready.loaded.compiled.arch, [])
    with driver.on(ready.device):
        function = driver.load(made.cubin, emitted.symbol)
    there: Ready = replace(ready, loaded=replace(ready.loaded, function=function))
    return lambda: launch.run(there, stream_of(None, "cupy", ready.device))


# --- against captured graphs ----------------------------------------------------------------------------------


def against_a_graph(text: str, names: str, given: dict[str, Any], result: str) -> tuple[float, list[tuple[int, float]]]:
    """Microseconds of a graph of the kernels, and of the fusion at several numbers of workers (the first: its own)."""
    kernels = Kernels("kernels.ph", text)
    members = [kernels[name] for name in names.split("+")]
    fused = phobos.fuse(*members)
    taken = {member.name: list(member.analysed()[1].program.tensors) for member in members}

    def apart() -> None:
        for member in members:
            member(**{name: given[name] for name in taken[member.name]})

    apart()
    launch.synchronize()
    want = given[result].copy()
    graph = micros(apart)
    found: list[tuple[int, float]] = []
    most = fused.plan(**given).grid[0]
    for grid in dict.fromkeys([most, *(g for g in (132, 264, 528) if g < most)]):
        given[result].fill(0)
        work = launcher(fused, given, "persistent-interleaved", grid)
        work()
        launch.synchronize()
        assert bool((given[result] == want).all()), grid
        found.append((grid, micros(work)))
    return graph, found


def rows_of(what: str, moved: int, graph: float, found: list[tuple[int, float]]) -> list[object]:
    own, (best_grid, best) = found[0], min(found, key=lambda pair: pair[1])
    return [what, graph, own[0], own[1], best_grid, best, graph / own[1], graph / best, moved / best / 1e6]


HEAD = [
    "size", "graph", "workers by default", "fused", "best workers", "fused at best", "graph / fused", "graph / best",
    "TB/s at best",
]  # fmt: skip


def softmax_table() -> tuple[str, list[str], list[list[object]]]:
    rows = []
    for r, c in ((128, 1024), (1024, 1024), (4096, 4096), (16384, 4096)):
        x = cupy.random.default_rng(1).random((r, c), dtype=numpy.float32)
        given = {
            "X": x, "M": cupy.zeros((r, 1), numpy.float32), "S": cupy.zeros((r, 1), numpy.float32),
            "Y": cupy.zeros_like(x),
        }  # fmt: skip
        graph, found = against_a_graph(SOFTMAX, "largest+total+divide", given, "Y")
        rows.append(rows_of(f"{r} x {c}", 4 * x.nbytes, graph, found))
    return "Softmax over rows, fp32, in three kernels (X read three times, Y written): microseconds", HEAD, rows


def chain_table() -> tuple[str, list[str], list[list[object]]]:
    rows = []
    for n in (8 << 10, 128 << 10, 1 << 20, 16 << 20):
        given = {name: cupy.zeros(n, numpy.float32) for name in "ABCY"}
        given["X"] = cupy.random.default_rng(2).random(n, dtype=numpy.float32)
        graph, found = against_a_graph(CHAIN, "scale+shift+bend+blend", given, "Y")
        rows.append(rows_of(f"{n >> 10} Ki", 9 * 4 * n, graph, found))
    return "Four operators in a chain, fp32, three barriers (9 numbers moved an element): microseconds", HEAD, rows


if __name__ == "__main__":
    main()

"""Microseconds per grid barrier and per stage between barriers: ours, grid.sync, the public two-counter algorithm,
CUDA graph nodes and plain launches, all in one run. Usage: python benchmarks/barrier.py [--json FILE]"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

import cupy
import numpy
from figures import Figure
from gpu_common import finish, micros, table

from phobos.runtime.cuda import launch
from phobos.runtime.kernel import kernel

BARRIERS = 484
STAGES = 64
THREADS = 256
TILE = 1024
SIZES = (1 << 13, 1 << 20, 1 << 24)  # where all are compared
KEPT_SIZES = (1 << 18, 1 << 20, 1 << 21)  # where what stays on chip is looked at closely

OURS = kernel("""
@launch(256)
@persistent
kernel rounds(PASSED: tensor<i32>[N], BAR: tensor<i32>[2], count: i64) {
  var passed = 0
  for i in range(0, count) {
    grid_barrier(BAR)
    passed += 1
  }
  PASSED[ctx.block.x] = passed
}
""")

STAGED = kernel("""
@launch(256)
@persistent
@autotune(TILE in [1024])
@aligned(N = TILE)
kernel staged(X: tensor<f32>[N], BAR: tensor<i32>[2], count: i64) {
  for stage in range(0, count) {
    for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
      X[t :+ TILE] = X[t :+ TILE] * 0.5 + 1.0
    }
    grid_barrier(BAR)
  }
}
""")

COMMON = """
__device__ __forceinline__ void stage(float4* x, long long n) {
  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL) {
    float4 v = x[i];
    v.x = v.x * 0.5f + 1.0f; v.y = v.y * 0.5f + 1.0f; v.z = v.z * 0.5f + 1.0f; v.w = v.w * 0.5f + 1.0f;
    x[i] = v;
  }
}
"""

# The public algorithm as its documentation describes it: arrivals counted in bar[0], the last one resets it and
# raises the generation in bar[1]; the others spin on the generation with atomic reads. Its compiler asks for every
# atomic to acquire and release and names no scope, which is the whole system: `ORDERED` is that; `FENCED` is what a
# person would make of it, relaxed atomics between two fences.
ORDERED = """
__device__ __forceinline__ int add(int* word, int value) {
  int old;
  asm volatile("atom.acq_rel.sys.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(word), "r"(value) : "memory");
  return old;
}
__device__ __forceinline__ void fence() {}
"""
FENCED = """
__device__ __forceinline__ int add(int* word, int value) { return atomicAdd(word, value); }
__device__ __forceinline__ void fence() { __threadfence(); }
"""
PUBLIC = (
    COMMON
    + """
__device__ __forceinline__ void barrier(int* bar) {
  __syncthreads();
  if (threadIdx.x == 0) {
    fence();
    const int generation = add(bar + 1, 0);
    if (add(bar, 1) == (int)gridDim.x - 1) {
      add(bar, -(int)gridDim.x);
      add(bar + 1, 1);
    } else {
      while (add(bar + 1, 0) == generation) {}
    }
    fence();
  }
  __syncthreads();
}
extern "C" __global__ void __launch_bounds__(256) rounds(int* bar, int count) {
  for (int i = 0; i < count; ++i) barrier(bar);
}
extern "C" __global__ void __launch_bounds__(256) stages(float4* x, long long n, int* bar, int count) {
  for (int i = 0; i < count; ++i) { stage(x, n); barrier(bar); }
}
"""
)

GRID_SYNC = (
    "#include <cooperative_groups.h>\n"
    + COMMON
    + """
extern "C" __global__ void __launch_bounds__(256) rounds(int* bar, int count) {
  for (int i = 0; i < count; ++i) cooperative_groups::this_grid().sync();
}
extern "C" __global__ void __launch_bounds__(256) stages(float4* x, long long n, int* bar, int count) {
  for (int i = 0; i < count; ++i) { stage(x, n); cooperative_groups::this_grid().sync(); }
}
"""
)

PLAIN = (
    COMMON
    + """
extern "C" __global__ void __launch_bounds__(256) empty(int* bar) {}
extern "C" __global__ void __launch_bounds__(256) one(float4* x, long long n) { stage(x, n); }
"""
)


def module(text: str, cooperative: bool) -> cupy.RawModule:
    return cupy.RawModule(code=text, backend="nvrtc", enable_cooperative_groups=cooperative)


TARGETS_US = {1: 0.95, 2: 1.0, 4: 1.25, 8: 2.0}  # of our barrier with so many CTAs on each multiprocessor
OURS_NAME, GRID_SYNC_NAME = "ours, abort and watchdog included", "grid.sync"
PUBLIC_NAMES = {
    "public two-counter algorithm, acquire-release": ORDERED,
    "public two-counter algorithm, relaxed and fenced": FENCED,
}
THROUGH_MEMORY, ON_CHIP = "ours, through memory", "ours, on chip from stage to stage"
NODES = "graph nodes"
# Of our stages, as parts of a graph node.
STAGE_TARGETS = {**{(THROUGH_MEMORY, 1 << n): 1 / 0.98 for n in (13, 20, 24)}, (ON_CHIP, 1 << 20): 1 / 1.5}


def shaped(
    barriers: dict[str, dict[str, float]], stages: dict[str, dict[str, float]], multiprocessors: int
) -> Iterator[Figure]:
    for name, run in barriers.items():
        for grid, us in run.items():
            target = TARGETS_US.get(int(grid) // multiprocessors) if name == OURS_NAME else None
            yield Figure(f"barrier, {name}, {grid} CTAs", us, "us", target=target)
    for other, target in {GRID_SYNC_NAME: 1.0, next(iter(PUBLIC_NAMES)): 0.5}.items():
        for grid, us in barriers.get(other, {}).items():
            if int(grid) >= multiprocessors:  # with a handful of CTAs all of them are one round trip
                ours = barriers[OURS_NAME][grid]
                yield Figure(f"barrier, ours beside {other}, {grid} CTAs", ours, "us", ours / us, other, target)
    for name, run in stages.items():
        if not run:  # nothing stays on chip at any of the grids
            continue
        of, _, n = name.rpartition(", ")
        nodes = min(stages[f"{NODES}, {n}"].values())
        target = STAGE_TARGETS.get((of, int(n)))
        yield Figure(f"stage of {n} elements, {of}, best grid", min(run.values()), "us", min(run.values()) / nodes,
                     "graph nodes", target)  # fmt: skip


def elements(n: int) -> str:
    """`8 Ki`, `16 Mi`."""
    return f"{n >> 20} Mi" if n >= 1 << 20 else f"{n >> 10} Ki"


def stage_tables(stages: dict[str, dict[str, float]], grids: list[int]) -> list[str]:
    """What `shaped` makes figures of, for readers: everybody at their best grid, all grids of each size, and closely
    what stays on chip. `stages` is by name and size, then by grid."""
    names = list(dict.fromkeys(key.rpartition(", ")[0] for key in stages))
    best: list[list[object]] = []
    for n in SIZES:
        runs = [stages.get(f"{name}, {n}") for name in names]
        best.append([elements(n), *[min(run.values()) if run else "" for run in runs]])
    out = [table("Microseconds per stage, at the best grid of each", ["elements", *names], best)]
    for n in SIZES:
        rows: list[list[object]] = []
        for name in names:
            run = stages.get(f"{name}, {n}")
            if run:
                rows.append([name, *[run.get(str(grid), "") for grid in grids]])
        out.append(table(f"Microseconds per stage, {elements(n)} elements", ["", *[f"{g} CTAs" for g in grids]], rows))
    closely: list[list[object]] = []
    for n in KEPT_SIZES:
        nodes, memory = stages[f"{NODES}, {n}"], stages[f"{THROUGH_MEMORY}, {n}"]
        for grid, us in stages[f"{ON_CHIP}, {n}"].items():
            tiles = -(-n // TILE // int(grid))
            closely.append([elements(n), grid, tiles, nodes[grid], memory[grid], us, nodes[grid] / us])
    head = ["elements", "CTAs", "tiles a CTA", "graph nodes", "through memory", "on chip", "graph / on chip"]
    out.append(table("Microseconds per stage where tiles stay on chip, all at the same grid", head, closely))
    return out


class Stages:
    """Microseconds per stage of everybody: `x = x * 0.5 + 1` over the whole buffer, then a barrier or a new launch."""

    def __init__(self, opponents: dict[str, object], plain: object) -> None:
        self.opponents, self.plain = opponents, plain
        self.bar = cupy.zeros(2, numpy.int32)

    def of(self, n: int, grids: list[int], *, everybody: bool) -> Iterator[tuple[str, dict[int, float]]]:
        """Of `n` elements, by grid; otherwise only ours and graph nodes, at the grids where something stays on chip."""
        x = cupy.zeros(n, numpy.float32)
        stays = [g for g in grids if self._stays(x, g)]
        many = grids if everybody else stays
        yield THROUGH_MEMORY, {g: self._own(x, g, False) for g in many}
        yield ON_CHIP, {g: self._own(x, g, True) for g in stays}
        for name, function in self.opponents.items() if everybody else ():
            yield name, {g: self._staged(function, x, g) for g in many}
        yield NODES, {g: micros(lambda g=g: self._chain(x, g), repeat=10) / STAGES for g in many}
        if everybody:
            one_by_one: dict[str, Any] = {"repeat": 5, "warm": 1, "captured": False}
            yield "plain launches", {g: micros(lambda g=g: self._chain(x, g), **one_by_one) / STAGES for g in many}

    def _stays(self, x: cupy.ndarray, g: int) -> bool:
        return any("stays on chip" in note for note in STAGED.plan(x, count=1, grid=g).notes)

    def _own(self, x: cupy.ndarray, g: int, keep: bool) -> float:
        x.fill(2.0 + 2.0**20)
        STAGED(x, count=10, grid=g, timeout=10.0, keep=keep)
        assert bool((x == 2.0 + 2.0**10).all()), "the stages are wrong"
        return micros(lambda: STAGED(x, count=STAGES, grid=g, timeout=10.0, keep=keep)) / STAGES

    def _staged(self, function: object, x: cupy.ndarray, g: int) -> float:
        arguments = (x, numpy.int64(len(x) // 4), self.bar, numpy.int32(STAGES))
        return micros(lambda: function((g,), (THREADS,), arguments)) / STAGES  # type: ignore[operator]

    def _chain(self, x: cupy.ndarray, g: int) -> None:
        for _ in range(STAGES):
            self.plain((g,), (THREADS,), (x, numpy.int64(len(x) // 4)))  # type: ignore[operator]


def main() -> None:
    multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    grids = [8, multiprocessors, 2 * multiprocessors, 4 * multiprocessors, 8 * multiprocessors]
    room = cupy.zeros(1 << 14, numpy.int32)
    bar = room[-2:]
    public = {name: module(atomics + PUBLIC, True) for name, atomics in PUBLIC_NAMES.items()}
    plain = module(PLAIN, False)
    try:
        synced = module(GRID_SYNC, True)
        synced.get_function("rounds")
    except cupy.cuda.compiler.CompileException as error:
        print("grid.sync is left out, as its header is not found:", str(error).splitlines()[0])
        synced = None
    figures: dict[str, dict[str, float]] = {}
    rows: list[list[object]] = []

    def each(name: str, run: dict[int, float]) -> None:
        figures[name] = {str(grid): number for grid, number in run.items()}
        rows.append([name, *[run.get(grid, "") for grid in grids]])

    # How far the word is from the multiprocessors is its address's affair, and up to a tenth of a barrier: a median of
    # some addresses, for all whose word can be chosen.
    places = [room[k * 1184 : k * 1184 + 2] for k in range(9)]

    def raw(function: object, grid: int, at: list[cupy.ndarray]) -> float:
        return median(
            micros(lambda place=place: function((grid,), (THREADS,), (place, numpy.int32(BARRIERS)))) / BARRIERS  # type: ignore[operator]
            for place in at
        )

    passed = cupy.zeros(max(grids), numpy.int32)

    def ours(g: int) -> float:
        times = []
        for place in places:
            passed.fill(0)
            time = micros(lambda place=place: OURS(passed, place, count=BARRIERS, grid=g, timeout=10.0))
            times.append(time / BARRIERS)
            launch.synchronize()
            assert bool((passed[:g] == BARRIERS).all()), "not every block passed every barrier"
        return median(times)

    each(OURS_NAME, {g: ours(g) for g in grids})
    if synced is not None:
        each(GRID_SYNC_NAME, {g: raw(synced.get_function("rounds"), g, [bar]) for g in grids})
    for name, built in public.items():
        each(name, {g: raw(built.get_function("rounds"), g, places) for g in grids})
    empty = plain.get_function("empty")

    def launches(g: int) -> None:
        for _ in range(BARRIERS):
            empty((g,), (THREADS,), (bar,))

    each(NODES, {g: micros(lambda g=g: launches(g), repeat=10) / BARRIERS for g in grids})
    single = {g: micros(lambda g=g: launches(g), repeat=5, warm=1, captured=False) / BARRIERS for g in grids}
    each("plain launches", single)
    tables = [table(f"Microseconds per barrier, {BARRIERS} back to back", ["", *[f"{g} CTAs" for g in grids]], rows)]

    stages: dict[str, dict[str, float]] = {}
    built = {} if synced is None else {GRID_SYNC_NAME: synced}
    opponents = {name: made.get_function("stages") for name, made in {**built, **public}.items()}
    measured = Stages(opponents, plain.get_function("one"))
    for n in sorted({*SIZES, *KEPT_SIZES}):
        many = [g for g in grids if g <= n // TILE or g == multiprocessors]
        if n not in SIZES:
            many = [g for g in many if g >= multiprocessors]
        for name, run in measured.of(n, many, everybody=n in SIZES):
            stages[f"{name}, {n}"] = {str(grid): number for grid, number in run.items()}
    launch.synchronize()
    tables += stage_tables(stages, grids)
    kept = {"us a barrier": figures, "us a stage": stages}
    finish("Grid barriers", tables, kept, list(shaped(figures, stages, multiprocessors)))


if __name__ == "__main__":
    main()

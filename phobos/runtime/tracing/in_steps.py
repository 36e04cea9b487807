"""A trace without a clock: when blocks would start, wait and end if each step took as long as every other.

What each block does is counted by the reference runtime. Blocks with a barrier all start at once, and leave each
barrier when the last has come. Blocks of any other grid start in their order as there is room, the workers of a
schedule take theirs one after another.
"""

from __future__ import annotations

from heapq import heapreplace
from typing import TYPE_CHECKING, Any

import numpy as np

from phobos.runtime.judge import Judging, Prepared, judge
from phobos.runtime.reference.steps import Counted, Steps
from phobos.runtime.tracing.places import barrier_at, between, of_phases
from phobos.runtime.tracing.trace import Tiles, Trace
from phobos.semantics.fusion import FusedProgram
from phobos.value import replace

if TYPE_CHECKING:
    from phobos.runtime.reference.numbers import Array


def traced(prepared: Prepared, judging: Judging) -> Trace:
    """Run a prepared launch, in place, and tell it in steps. Raises KernelFault, LaunchError."""
    steps = Steps()
    judge(prepared, replace(judging, counting=steps))
    bound, work = prepared.placement.bound, prepared.work
    tiles: Tiles | None = None
    if work.is_persistent:
        start, arrived, left, end, tiles = _on_workers(prepared, steps.phases)
    elif steps.phases and steps.phases[0].before:
        start, arrived, left, end = _together(steps.phases[0])
    else:
        start, end = _as_there_is_room(steps.phases[0].last if steps.phases else _none(0), prepared.resident)
        arrived = left = np.zeros((len(start), 0), np.int64)
    if isinstance(bound.program, FusedProgram):
        stretches, order = of_phases(bound, arrived.shape[1], True)
    else:
        barriers = [barrier_at(bound, s.span, s.calls) for phase in steps.phases for s in phase.barriers]
        stretches, order = between(barriers, True)
    return Trace(
        kernel=prepared.kernel.name, path=prepared.kernel.path, device=prepared.plan.device, plan=prepared.plan,
        unit="steps", resolution=1, start=start, end=end, arrived=arrived, left=left, processor=None,
        stretches=stretches, order=order, complete=True, tiles=tiles, lost=(), cost=None,
    )  # fmt: skip


def _none(count: int) -> Array:
    return np.zeros(count, np.int64)


def _together(phase: Counted) -> tuple[Array, Array, Array, Array]:
    """All blocks start at once; each barrier holds them until the last has come."""
    now = _none(len(phase.last))
    arrived, left = [], []
    for before in phase.before:
        arrived.append(now + before)
        now = np.full_like(now, arrived[-1].max())
        left.append(now)
    return _none(len(now)), np.stack(arrived, axis=1), np.stack(left, axis=1), now + phase.last


def _as_there_is_room(took: Array, resident: int | None) -> tuple[Array, Array]:
    """Blocks in their order, each when one of `resident` (None: all) places is free."""
    start = _none(len(took))
    if resident is not None and resident < len(took):
        free = [0] * resident
        for block, steps in enumerate(took.tolist()):
            start[block] = free[0]
            heapreplace(free, free[0] + steps)
    return start, start + took


def _on_workers(prepared: Prepared, phases: list[Counted]) -> tuple[Array, Array, Array, Array, Tiles]:
    work = prepared.work
    now = _none(work.workers)
    arrived, left = [], []
    rows: list[tuple[int, int, int, int, int]] = []
    names: list[str] = []
    for number, counted in enumerate(phases):
        if number:
            arrived.append(now)
            now = np.full_like(now, now.max())
            left.append(now)
        phase = work.phases[number]
        first = len(names)
        names += [program.name for program, _ in prepared.phases[number]]
        then = now.copy()
        for worker in range(work.workers):
            at = int(now[worker])
            for block in work.share(worker, number):
                root, coordinates = phase.locate(block)
                local: Any = phase.roots[root].number(coordinates)
                until = at + int(counted.last[phase.starts[root] + local])
                rows.append((worker, first + root, int(local), at, until))
                at = until
            then[worker] = at
        now = then
    columns = np.asarray(rows, np.int64).reshape(-1, 5).T
    tiles = Tiles(tuple(names), *columns)
    shape = (work.workers, 0)
    none = np.zeros(shape, np.int64)
    return (
        _none(work.workers), np.stack(arrived, axis=1) if arrived else none, np.stack(left, axis=1) if left else none,
        now, tiles,
    )  # fmt: skip

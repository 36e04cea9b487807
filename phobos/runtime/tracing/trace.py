"""A trace: when each block of one launch started, came to each barrier, went on, and ended.

On a GPU times are nanoseconds of the device's own clock, in the reference runtime steps (`reference.steps`). All count
from the first start. Barriers hold all blocks, so every block crosses the same ones in the same order: crossing k of
one block is crossing k of every other.
"""

from __future__ import annotations

from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.plan import Plan
    from phobos.runtime.reference.numbers import Array
    from phobos.runtime.tracing.summary import Summary

Unit = Literal["ns", "steps"]


@value
class Stretch:
    """What blocks do between two places where they wait for each other: its name, and the line (from 1) of the barrier
    at its end, None for the one that ends with the kernel. `note` says more of that barrier, or is empty."""

    name: str
    line: int | None
    note: str


@value
class Tiles:
    """The virtual blocks of a persistent loop: which CTA ran block `number` of `kernels[kernel]`, and when."""

    kernels: tuple[str, ...]
    cta: Array
    kernel: Array
    number: Array
    begun: Array
    ended: Array


@value
class Cost:
    """What it takes to trace: milliseconds of the kernel without and with it, and registers a thread."""

    plain_ms: float
    traced_ms: float
    plain_registers: int
    traced_registers: int

    @property
    def ratio(self) -> float:
        return self.traced_ms / self.plain_ms if self.plain_ms else 1.0


class Trace:
    """One traced launch. Print it, or look at `summary`; `save` writes it for Perfetto, `plot` draws it.

    `start` and `end` have an entry a CTA, `arrived` and `left` a row a CTA and a column a crossing. `order` names the
    stretch before each crossing and, where `complete`, the last one. `processor` is the multiprocessor of each CTA, or
    None. `lost` says what was not kept. `ctas` are their numbers, where not all are kept.
    """

    def __init__(
        self, *, kernel: str, path: str, device: str, plan: Plan, unit: Unit, resolution: int,
        start: Array, end: Array, arrived: Array, left: Array, processor: Array | None,
        stretches: tuple[Stretch, ...], order: tuple[int, ...], complete: bool, tiles: Tiles | None,
        lost: tuple[str, ...], cost: Cost | None,
    ) -> None:  # fmt: skip
        self.kernel, self.path, self.device, self.plan = kernel, path, device, plan
        self.unit, self.resolution = unit, resolution
        self.start, self.end, self.arrived, self.left = start, end, arrived, left
        self.processor = processor
        self.stretches, self.order, self.complete = stretches, order, complete
        self.tiles, self.lost, self.cost = tiles, lost, cost

    @property
    def blocks(self) -> int:
        """CTAs in the trace."""
        return len(self.start)

    @property
    def noun(self) -> str:
        """What a CTA is called: a worker where it runs virtual blocks."""
        return "block" if self.tiles is None else "worker"

    @property
    def crossings(self) -> int:
        """Barriers that each CTA crossed and that are kept."""
        return int(self.arrived.shape[1])

    @cached_property
    def work(self) -> Array:
        """Time of each CTA (row) in each stretch as it came (column), without waiting."""
        begun = np.concatenate([self.start[:, None], self.left], axis=1)
        ended = np.concatenate([self.arrived, self.end[:, None]], axis=1)
        took: Array = (ended - begun)[:, : len(self.order)]
        return took

    @cached_property
    def waits(self) -> Array:
        """Time of each CTA (row) at each crossing (column)."""
        return self.left - self.arrived

    @cached_property
    def lanes(self) -> Array:
        """A lane for each CTA, so that no two of a lane (of a multiprocessor) run at once: where it was resident."""
        made = np.zeros(self.blocks, np.int64)
        places = np.zeros(self.blocks, np.int64) if self.processor is None else self.processor
        busy: dict[int, list[tuple[int, int]]] = {}  # of each multiprocessor: when a lane is free again, and which
        free: dict[int, list[int]] = {}
        for cta in np.lexsort((np.arange(self.blocks), self.start)).tolist():
            place, start, end = int(places[cta]), int(self.start[cta]), int(self.end[cta])
            taken, idle = busy.setdefault(place, []), free.setdefault(place, [])
            while taken and taken[0][0] <= start:
                heappush(idle, heappop(taken)[1])
            lane = heappop(idle) if idle else len(taken)
            heappush(taken, (end, lane))
            made[cta] = lane
        return made

    @cached_property
    def summary(self) -> Summary:
        """The figures: work, waiting and imbalance of each stretch, tail, residency, and what makes it slow."""
        from phobos.runtime.tracing.summary import summarised

        return summarised(self)

    # --- what becomes of it -----------------------------------------------------------------------------------

    def to_chrome(self) -> dict[str, Any]:
        """The trace as Perfetto and chrome://tracing read it (the JSON object form)."""
        from phobos.runtime.tracing.chrome import chrome

        return chrome(self)

    def save(self, path: str) -> None:
        """Write `to_chrome` as JSON, whole or not at all. Raises InputError."""
        import json

        from phobos.check.project import write

        write(path, json.dumps(self.to_chrome(), separators=(",", ":"), ensure_ascii=False) + "\n")

    def to_svg(self) -> str:
        """The CTAs over time, as a drawing."""
        from phobos.runtime.tracing.picture import svg

        return svg(self)

    def plot(self, path: str) -> None:
        """Write `to_svg`, whole or not at all. Raises InputError."""
        from phobos.check.project import write

        write(path, self.to_svg())

    def as_dict(self) -> dict[str, Any]:
        """The summary for JSON."""
        return self.summary.as_dict()

    def __str__(self) -> str:
        return self.summary.text()

    def __repr__(self) -> str:
        return f"<trace of {self.kernel} on {self.device}: {self.blocks} blocks, {self.crossings} crossings>"

    def _repr_svg_(self) -> str:
        """For notebooks."""
        return self.to_svg()

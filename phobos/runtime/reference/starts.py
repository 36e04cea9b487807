"""Which blocks of a phase start, and when: as there is room for them, or one after another on each of some workers.

In batches, blocks that start together run together; one at a time, a block starts when the one before it on its
worker has ended. A block is named by its number, and the blocks of the kernels before its own in the phase, whatever
the order in which they start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from phobos.runtime.reference.machine import Machine
from phobos.runtime.reference.numbers import Array
from phobos.semantics.schedules import Work, rounds


class Starts(Protocol):
    """Which blocks start when."""

    def together(self, most: int) -> tuple[Machine, Array] | None:
        """Blocks of one kernel, ascending, that start next and run as one batch; None when all have started."""
        ...

    def more(self, running: int) -> Sequence[int]:
        """Blocks that start now, one at a time, when so many run."""
        ...

    def ended(self, block: int) -> None:
        """A block that ran by itself has ended."""
        ...

    def left(self) -> Sequence[int]:
        """Blocks that have not started."""
        ...


class AsThereIsRoom:
    """In the order of their numbers, at most `slots` at once."""

    def __init__(self, machines: Sequence[Machine], slots: int) -> None:
        self.machines, self.slots = machines, slots
        self.blocks = sum(machine.blocks for machine in machines)
        self.next = 0

    def together(self, most: int) -> tuple[Machine, Array] | None:
        """Whole rows of a grid, or equal parts of one."""
        if self.next >= self.blocks:
            return None
        machine = next(m for m in self.machines if self.next < m.first + m.blocks)
        start, row = self.next - machine.first, machine.grid[0]
        if most >= row:
            stop = min(machine.blocks, start + most // row * row)
        else:
            equal = -(-row // -(-row // most))
            stop = min(start // row * row + row, start + equal, machine.blocks)
        self.next = machine.first + stop
        return machine, np.arange(machine.first + start, self.next, dtype=np.int64)

    def more(self, running: int) -> Sequence[int]:
        first = self.next
        self.next = min(self.blocks, max(first, first + self.slots - running))
        return range(first, self.next)

    def ended(self, block: int) -> None:
        pass

    def left(self) -> Sequence[int]:
        return range(self.next, self.blocks)


class OnWorkers:
    """As a schedule shares the blocks of a phase out. `apart`: no batch holds two blocks of one worker."""

    def __init__(self, machines: Sequence[Machine], work: Work, phase: int, apart: bool) -> None:
        self.machines = machines
        of = work.phases[phase]
        turns = [np.asarray(ids, np.int64) for ids in rounds(work.kind, work.workers, of.total)]
        ids = np.concatenate(turns) if turns else np.zeros(0, np.int64)
        self.order: Array = np.empty_like(ids)  # the blocks, as they start
        for root, start in zip(of.roots, of.starts, strict=True):
            mine = (ids >= start) & (ids < start + root.total)
            self.order[mine] = start + root.number(root.coordinates(ids[mine] - start))
        self.workers: Array = work.worker_of(phase, ids)
        last = np.asarray([machine.first + machine.blocks for machine in machines])
        self.owner: Array = np.searchsorted(last, self.order, side="right")
        cut = np.flatnonzero(np.diff(self.owner)) + 1  # another kernel follows
        self.ends = np.union1d(cut, np.cumsum([len(turn) for turn in turns])) if apart else np.append(cut, len(ids))
        self.next = 0
        self.waiting: dict[int, deque[int]] | None = None  # blocks of each worker, when they run one at a time
        self.on: dict[int, int] = {}  # the workers of blocks that run

    def together(self, most: int) -> tuple[Machine, Array] | None:
        start = self.next
        if start >= len(self.order):
            return None
        self.next = min(start + most, int(self.ends[np.searchsorted(self.ends, start, side="right")]))
        return self.machines[int(self.owner[start])], np.sort(self.order[start : self.next])

    def more(self, running: int) -> Sequence[int]:
        if self.waiting is None:
            self.waiting = {}
            for block, worker in zip(self.order[self.next :].tolist(), self.workers[self.next :].tolist(), strict=True):
                self.waiting.setdefault(worker, deque()).append(block)
        begun: list[int] = []
        busy = set(self.on.values())
        for worker, blocks in self.waiting.items():
            if worker not in busy and blocks:
                block = blocks.popleft()
                self.on[block] = worker
                begun.append(block)
        return sorted(begun)

    def ended(self, block: int) -> None:
        self.on.pop(block, None)

    def left(self) -> Sequence[int]:
        if self.waiting is not None:
            return sorted(block for blocks in self.waiting.values() for block in blocks)
        return sorted(self.order[self.next :].tolist())

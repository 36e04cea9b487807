"""Recognising a block that goes round a `while` and can never leave it by itself.

A block whose variables are, at the end of a round, what they were at the end of an earlier one, and for
which no cell that it read in between has changed, will do the same for ever, unless another block changes
such a cell. When all blocks that can run are of this kind, the run is a deadlock.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phobos.runtime.reference.group import Group
from phobos.runtime.reference.machine import Buffer
from phobos.runtime.reference.numbers import Value
from phobos.runtime.reference.windows import Piece
from phobos.value import value


@value
class Change:
    """A cell or box of a tensor that a block gave other bits than it had."""

    block: int
    buffer: Buffer
    piece: Piece


class Log:
    """All changes of memory of this phase, in order."""

    LIMIT = 50_000

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.generation = 0  # grows when the log was cut: older checkpoints say nothing then

    def add(self, change: Change) -> None:
        if len(self.changes) >= self.LIMIT:
            self.clear()
        self.changes.append(change)

    def clear(self) -> None:
        self.changes.clear()
        self.generation += 1


class Watch:
    """What one block has read since its checkpoint, and the checkpoint itself."""

    __slots__ = ("generation", "limit", "position", "reads", "rounds", "seen", "state")

    def __init__(self) -> None:
        self.reads: list[tuple[Buffer, Piece]] = []
        self.seen: set[tuple[str, tuple[int, ...], tuple[int, ...]]] = set()
        self.state: tuple[Any, ...] | None = None
        self.position = 0
        self.generation = -1
        self.rounds = 0
        self.limit = 1

    def read(self, buffer: Buffer, piece: Piece) -> None:
        if self.state is None:
            return
        if piece.starts is None:
            key = (buffer.name, piece.first, piece.lengths)
            if key in self.seen:
                return
            self.seen.add(key)
        self.reads.append((buffer, piece))

    def sees(self, changes: list[Change]) -> bool:
        """Whether one of these changes is of a cell that the block has read since its checkpoint."""
        return any(meets(buffer, piece, changes) for buffer, piece in self.reads)

    def forget(self) -> None:
        self.state = None
        self.rounds = 0
        self.limit = 1
        self.reads.clear()
        self.seen.clear()

    def round(self, group: Group, log: Log) -> list[Change] | None:
        """At the end of a round: what it changes while it goes round for ever, if others do not help; else None."""
        state = state_of(group)
        if self.state is not None and self.generation == log.generation and self.state == state:
            mine = int(group.ids[0])
            since = log.changes[self.position :]
            if not self.sees(since):
                self.position = len(log.changes)  # the next period is looked at by itself
                return [change for change in since if change.block == mine]
            self.limit = 1
        elif self.state is not None and self.rounds < self.limit and self.generation == log.generation:
            self.rounds += 1
            return None
        else:
            self.limit = min(self.limit * 2, 1 << 20)
        self.state = state
        self.position = len(log.changes)
        self.generation = log.generation
        self.rounds = 0
        self.reads.clear()
        self.seen.clear()
        return None


def state_of(group: Group) -> tuple[Any, ...]:
    """Everything that decides what a block does next, but memory: scalars first, then tiles."""
    scope = group.machine.code.scope[group.pc]
    scalars: list[Any] = [group.pc]
    tiles: list[Any] = []
    for key, held in group.env.items():
        if key not in scope or (isinstance(key, tuple) and key[1] == "count"):
            continue
        if isinstance(held, np.ndarray) and held.ndim > 1:
            tiles.append(held)
        else:
            scalars.append((id(key), _frozen(held)))
    return (tuple(scalars), tuple(tile.tobytes() for tile in tiles))


def _frozen(held: Value) -> Any:
    if isinstance(held, tuple):
        return tuple(_frozen(part) for part in held)
    if isinstance(held, (np.ndarray, np.generic)):
        return held.tobytes()
    return held


def meets(buffer: Buffer, piece: Piece, changes: list[Change]) -> bool:
    return any(change.buffer is buffer and overlap(buffer, piece, change.piece) for change in changes)


def overlap(buffer: Buffer, left: Piece, right: Piece) -> bool:
    """Whether two pieces of one tensor share a cell."""
    if left.starts is None and right.starts is None and left.step is None and right.step is None:
        return all(a < b + m and b < a + n for a, n, b, m in zip(left.first, left.lengths, right.first, right.lengths))
    cells = np.zeros(buffer.extents, np.bool_)
    left.write(cells, True)
    return bool(right.read(cells).any())

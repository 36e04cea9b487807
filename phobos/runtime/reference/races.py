"""Two detectors of races: by phases, and by vector clocks where atomics order blocks too.

A race is two blocks that touch one cell, one of them by a plain store, and nothing orders them. Stores that
leave equal bits are none. Shadows exist for tensors that the program stores to; others cannot race.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phobos.runtime.reference.faults import Touch, race
from phobos.runtime.reference.group import Group
from phobos.runtime.reference.machine import Buffer, Place
from phobos.runtime.reference.numbers import Array, Value, bits
from phobos.runtime.reference.windows import Piece

CLOCK_BYTES = 1 << 30  # the most that the clocks of one tensor may take


class TooLarge(Exception):
    """Race detection would not fit; the message says what would."""


class _Marks:
    """Who has touched each cell in this phase in one way: the first block (+1), and another one if there is."""

    __slots__ = ("first", "first_place", "other", "other_place")

    def __init__(self, extents: tuple[int, ...]) -> None:
        self.first = np.zeros(extents, np.int32)
        self.first_place = np.zeros(extents, np.int16)
        self.other: Array | None = None
        self.other_place: Array | None = None

    def add(self, piece: Piece, who: Array, place: int) -> None:
        """`who` are ids + 1, shaped (count or 1, 1, ...); the boxes of the blocks do not overlap."""
        first = piece.read(self.first)
        nobody = first == 0
        if nobody.all():
            piece.write(self.first, np.broadcast_to(who, first.shape))
            piece.write(self.first_place, place)
            return
        mine = first == who
        more = ~nobody & ~mine
        if nobody.any():
            piece.write(self.first, np.where(nobody, who, first))
            piece.write(self.first_place, np.where(nobody, place, piece.read(self.first_place)).astype(np.int16))
        if more.any():
            if self.other is None or self.other_place is None:
                self.other = np.zeros_like(self.first)
                self.other_place = np.zeros_like(self.first_place)
            other = piece.read(self.other)
            new = more & (other == 0)
            if new.any():
                piece.write(self.other, np.where(new, who, other))
                piece.write(self.other_place, np.where(new, place, piece.read(self.other_place)).astype(np.int16))

    def by_others(self, piece: Piece, who: Array) -> tuple[Array, Array] | None:
        """Which block (+1) other than its own has touched each cell of a piece (0: none), and where; None: nowhere."""
        first = piece.read(self.first)
        foreign = (first != 0) & (first != who)
        if self.other is None or self.other_place is None:
            if not foreign.any():
                return None
            return np.where(foreign, first, 0), piece.read(self.first_place)
        other = piece.read(self.other)
        second = (other != 0) & (other != who)
        if not foreign.any() and not second.any():
            return None
        block = np.where(foreign, first, np.where(second, other, 0))
        return block, np.where(foreign, piece.read(self.first_place), piece.read(self.other_place))

    def clear(self) -> None:
        self.first.fill(0)
        if self.other is not None:
            self.other.fill(0)


class _PhaseShadow:
    __slots__ = ("reads", "touched", "varied", "writes")

    def __init__(self, extents: tuple[int, ...]) -> None:
        self.reads = _Marks(extents)
        self.writes = _Marks(extents)
        self.varied = np.zeros(extents, np.bool_)  # cells to which one block has stored two values in this phase
        self.touched = False


class Phases:
    """For programs without atomics: only barriers order blocks, so a phase is all there is to know."""

    def __init__(self, buffers: list[Buffer]) -> None:
        self.places: list[Place] = []
        self.numbers: dict[int, int] = {}
        self.buffers = buffers
        for buffer in buffers:
            buffer.shadow = _PhaseShadow(buffer.extents)

    def _number(self, place: Place) -> int:
        number = self.numbers.get(id(place))
        if number is None:
            number = self.numbers[id(place)] = len(self.places)
            self.places.append(place)
        return number

    def read(self, group: Group, buffer: Buffer, piece: Piece, who: Array, place: Place) -> None:
        shadow: _PhaseShadow = buffer.shadow
        shadow.touched = True
        if piece.step is None and piece.starts is None:
            who = who[:2]  # of many blocks that load one box, two stand for all: one of them is not the writer
        for part, ids in _apart(piece, who):
            mine = _column(ids, len(buffer.extents))
            found = shadow.writes.by_others(part, mine)
            if found is not None:
                self._report(buffer, part, ids, found, "load", "store", place)
            shadow.reads.add(part, mine, self._number(place))

    def write(self, group: Group, buffer: Buffer, piece: Piece, who: Array, values: Value, place: Place) -> None:
        shadow: _PhaseShadow = buffer.shadow
        shadow.touched = True
        values = np.asarray(values)
        for part, ids, box in _apart_with(piece, who, values):
            mine = _column(ids, len(buffer.extents))
            found = shadow.reads.by_others(part, mine)
            if found is not None:
                self._report(buffer, part, ids, found, "store", "load", place)
            before = part.read(shadow.writes.first)
            if before.any():
                differs = np.broadcast_to(bits(part.read(buffer.array)) != bits(box), before.shape)
                found = shadow.writes.by_others(part, mine)
                if found is not None:
                    clash = (found[0] != 0) & (differs | part.read(shadow.varied))
                    if clash.any():
                        self._report(
                            buffer, part, ids, (np.where(clash, found[0], 0), found[1]), "store", "store", place, box
                        )
                own = (before != 0) & differs
                if own.any():
                    part.write(shadow.varied, part.read(shadow.varied) | own)
            shadow.writes.add(part, mine, self._number(place))
            if len(ids) > 1 and len(part.lengths) and part.step is None and part.starts is None:
                raise AssertionError("several blocks in one box")
            # Later parts of the same statement compare with what this one leaves.
            if len(ids) == 1:
                part.write(buffer.array, box)

    def atomic(self, group: Group, buffer: Buffer, index: int, place: Place) -> None:
        raise AssertionError("a program with atomics needs clocks")

    def barrier(self) -> None:
        for buffer in self.buffers:
            shadow: _PhaseShadow = buffer.shadow
            if shadow.touched:
                shadow.reads.clear()
                shadow.writes.clear()
                shadow.varied.fill(False)
                shadow.touched = False

    def _report(
        self,
        buffer: Buffer,
        piece: Piece,
        ids: Array,
        found: tuple[Array, Array],
        now: str,
        then: str,
        place: Place,
        values: Array | None = None,
    ) -> None:
        others, places = found
        spot = np.argwhere(others)[0]
        other = int(others[tuple(spot)]) - 1
        lane = int(spot[0])
        block = int(ids[lane] if len(ids) > 1 else ids[0])
        index = _cell_of(piece, lane, spot[1:])
        earlier = self.places[int(places[tuple(spot)])]
        mine = None if values is None else _shown(np.broadcast_to(values, others.shape)[tuple(spot)])
        held = _shown(buffer.array[index])
        raise race(
            buffer.name, index, Touch(block, now, place.span, place.calls, mine),
            Touch(other, then, earlier.span, earlier.calls, held),
        )  # fmt: skip


def _shown(element: Any) -> str:
    return str(np.asarray(element)[()])


def _column(ids: Array, rank: int) -> Array:
    return (ids.astype(np.int32) + 1).reshape((-1,) + (1,) * rank)


def _cell_of(piece: Piece, lane: int, spot: Any) -> tuple[int, ...]:
    if piece.starts is not None:
        return tuple(int(s[lane]) + int(n) for s, n in zip(piece.starts, spot))
    step = piece.step or (0,) * len(piece.first)
    return tuple(f + lane * s + int(n) for f, s, n in zip(piece.first, step, spot))


def _apart(piece: Piece, who: Array) -> list[tuple[Piece, Array]]:
    return [(part, ids) for part, ids, _ in _apart_with(piece, who, None)]


def _apart_with(piece: Piece, who: Array, values: Any) -> list[tuple[Piece, Array, Any]]:
    """The piece as pieces in which no two blocks share a cell: itself where that is plain, else one a block."""
    if piece.count == 1 or len(who) == 1:
        return [(piece, who, values)]
    if piece.step is not None and any(step and abs(step) >= n for step, n in zip(piece.step, piece.lengths)):
        return [(piece, who, values)]
    if piece.starts is not None and all(n == 1 for n in piece.lengths):
        flat = np.ravel_multi_index(piece.starts, tuple(int(s.max()) + 1 for s in piece.starts))
        if len(np.unique(flat)) == len(flat):
            return [(piece, who, values)]
    parts = []
    for lane in range(piece.count if piece.step is not None or piece.starts is not None else len(who)):
        if piece.starts is not None:
            first = tuple(int(s[lane]) for s in piece.starts)
        else:
            step = piece.step or (0,) * len(piece.first)
            first = tuple(f + lane * s for f, s in zip(piece.first, step))
        box = values
        if values is not None and values.ndim > len(piece.lengths) and values.shape[0] > 1:
            box = values[lane : lane + 1]
        parts.append((Piece(None, 1, None, piece.lengths, first, None, None), who[lane : lane + 1], box))
    return parts


class Clocks:
    """For programs with atomics: a vector clock a block, joined by barriers and along chains of atomics."""

    def __init__(self, buffers: list[Buffer], blocks: int) -> None:
        self.blocks = blocks
        self.clock = np.zeros((blocks, blocks), np.int32)
        np.fill_diagonal(self.clock, 1)
        self.released: dict[tuple[str, int], Array] = {}
        self.buffers = buffers
        self.places: dict[tuple[str, str, int], Place] = {}
        for buffer in buffers:
            need = 4 * blocks * int(np.prod(buffer.extents, dtype=np.int64))
            if need > CLOCK_BYTES:
                raise TooLarge(
                    f"race detection in a kernel with atomics keeps a clock for each of {blocks} blocks and each "
                    f"cell of `{buffer.name}`: {need >> 20} MiB, over the limit of {CLOCK_BYTES >> 20}; take a smaller "
                    "grid or size"
                )
            shape = (blocks, *buffer.extents)
            buffer.shadow = {kind: np.zeros(shape, np.int32) for kind in ("load", "store", "atomic")}
            buffer.shadow["varied"] = np.zeros(buffer.extents, np.bool_)

    def _against(
        self,
        buffer: Buffer,
        piece: Piece,
        block: int,
        kind: str,
        now: str,
        place: Place,
        keep: Any = None,
        values: Array | None = None,
    ) -> None:
        marks: Array = buffer.shadow[kind]
        seen = np.stack(
            [piece.read(marks[k])[0] if piece.starts is None else piece.read(marks[k]) for k in range(self.blocks)]
        )
        mine = self.clock[block].reshape((-1,) + (1,) * (seen.ndim - 1))
        late = seen > mine
        late[block] = False
        if keep is not None:
            late &= keep
        if late.any():
            spot = np.argwhere(late)[0]
            other = int(spot[0])
            lane, inner = (int(spot[1]), spot[2:]) if piece.starts is not None else (0, spot[1:])
            index = _cell_of(piece, lane, inner)
            earlier = self.places[(buffer.name, kind, other)]
            stored = None
            if values is not None:
                stored = _shown(np.broadcast_to(values, (1, *piece.lengths))[(0, *inner)])
            raise race(
                buffer.name, index, Touch(block, now, place.span, place.calls, stored),
                Touch(other, kind, earlier.span, earlier.calls, _shown(buffer.array[index])),
            )  # fmt: skip

    def read(self, group: Group, buffer: Buffer, piece: Piece, who: Array, place: Place) -> None:
        block = int(who[0])
        self._against(buffer, piece, block, "store", "load", place)
        piece.write(buffer.shadow["load"][block], self.clock[block, block])
        self.places[(buffer.name, "load", block)] = place

    def write(self, group: Group, buffer: Buffer, piece: Piece, who: Array, values: Value, place: Place) -> None:
        block = int(who[0])
        self._against(buffer, piece, block, "load", "store", place)
        self._against(buffer, piece, block, "atomic", "store", place)
        values = np.asarray(values)
        differs = (bits(piece.read(buffer.array)) != bits(values))[0]
        varied = piece.read(buffer.shadow["varied"])[0]
        self._against(buffer, piece, block, "store", "store", place, differs | varied, values)
        now = self.clock[block, block]
        again = piece.read(buffer.shadow["store"][block])[0] == now
        piece.write(buffer.shadow["varied"], (again & (differs | varied))[None])
        piece.write(buffer.shadow["store"][block], now)
        self.places[(buffer.name, "store", block)] = place

    def atomic(self, group: Group, buffer: Buffer, index: int, place: Place) -> None:
        block = int(group.ids[0])
        clock = self.clock[block]
        key = (buffer.name, index)
        before = self.released.get(key)
        if before is not None:
            np.maximum(clock, before, out=clock)
        if buffer.tracked:
            rank = len(buffer.extents)
            spot = Piece(None, 1, None, (1,) * rank, (index, 0)[:rank], None, None)
            self._against(buffer, spot, block, "store", "atomic", place)
            spot.write(buffer.shadow["atomic"][block], clock[block])
            self.places[(buffer.name, "atomic", block)] = place
        self.released[key] = clock.copy()
        clock[block] += 1

    def barrier(self) -> None:
        joined = self.clock.max(axis=0)
        self.clock[:] = joined
        self.clock[np.arange(self.blocks), np.arange(self.blocks)] += 1


__all__ = ["Clocks", "Phases", "TooLarge"]

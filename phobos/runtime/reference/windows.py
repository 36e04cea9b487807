"""Where the cells of one access lie, for all blocks of a group at once.

A `Window` is the geometry of a slice: which cells of which block lie inside the tensor, as few pieces that
NumPy can move in one step. It knows extents and starts and nothing of data, so the same window reads a
tensor, writes it, and marks its shadow in the race detector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from phobos.runtime.reference.numbers import BF16, Array, Value
from phobos.value import value


@value
class Piece:
    """A box of `lengths` cells for some of the blocks.

    `lanes` are their positions in the group (None: all of them). `inner` is where the box lies in the tile
    (None: it is the whole tile). `first` is the first block's start and `step` what each further block adds;
    where the starts are no such progression, `starts` lists them by axis. With `step` None every block means
    the same box.
    """

    lanes: slice | Array | None
    count: int
    inner: tuple[slice, ...] | None
    lengths: tuple[int, ...]
    first: tuple[int, ...]
    step: tuple[int, ...] | None
    starts: tuple[Array, ...] | None

    def read(self, cells: Array) -> Array:
        """(count or 1, *lengths): a view where the blocks' starts are a progression, else a copy."""
        if self.starts is not None:
            return np.asarray(_boxes(cells, self.lengths)[self.starts])
        if self.step is None:
            box = tuple(slice(f, f + n) for f, n in zip(self.first, self.lengths))
            return np.asarray(cells[box][None])
        return _progression(cells, self.count, self.lengths, self.first, self.step)

    def write(self, cells: Array, values: Value) -> None:
        """Put `values`, broadcast to (count or 1, *lengths). Where all blocks mean one box the last block wins."""
        if self.starts is not None:
            _boxes(cells, self.lengths)[self.starts] = values
            return
        if self.step is None:
            box = tuple(slice(f, f + n) for f, n in zip(self.first, self.lengths))
            cells[box] = values[-1] if isinstance(values, np.ndarray) and values.ndim > len(box) else values
            return
        _progression(cells, self.count, self.lengths, self.first, self.step)[...] = values


@value
class Window:
    """All pieces of a slice access. `masked`: some cell of some block lies outside, and is in no piece."""

    size: int
    lengths: tuple[int, ...]
    pieces: tuple[Piece, ...]
    masked: bool

    @property
    def uniform(self) -> bool:
        """Every block means the same cells."""
        return all(piece.lanes is None and piece.step is None and piece.starts is None for piece in self.pieces)

    def read(self, cells: Array) -> Array:
        """The tile of every block: (size or 1, *lengths), 0 where a cell lies outside. May be a view of `cells`."""
        if not self.masked and len(self.pieces) == 1:
            return self.pieces[0].read(cells)
        tile = np.zeros((1 if self.uniform else self.size, *self.lengths), cells.dtype)
        for piece in self.pieces:
            place(tile, piece, piece.read(cells))
        return tile

    def write(self, cells: Array, values: Value) -> None:
        """Store a tile (size or 1, *lengths), or a scalar that fills; cells outside are skipped."""
        for piece in self.pieces:
            piece.write(cells, part(values, piece))


def place(tile: Array, piece: Piece, box: Array) -> None:
    """Put a piece's box where it belongs in a tile of all blocks."""
    inner = piece.inner if piece.inner is not None else (slice(None),) * (tile.ndim - 1)
    tile[(slice(None) if piece.lanes is None else piece.lanes, *inner)] = box


def part(values: Value, piece: Piece) -> Value:
    """What of a tile of all blocks belongs to a piece."""
    if not isinstance(values, np.ndarray) or values.ndim <= len(piece.lengths):
        return values
    if piece.lanes is not None and values.shape[0] != 1:
        values = values[piece.lanes]
    return values if piece.inner is None else values[(slice(None), *piece.inner)]


def window(extents: Sequence[int], starts: Sequence[Value], lengths: tuple[int, ...], size: int) -> Window:
    """The window of a slice of a tensor of `extents`: starts are ints or one number a block, lengths >= 0."""
    if 0 in lengths:
        return Window(size, lengths, (), True)
    first: list[int] = []
    step: list[int] = []
    lane_axes: list[int] = []
    whole, listed = True, False  # every cell of every block lies inside; the starts are no progression
    for axis, start in enumerate(starts):
        if isinstance(start, np.ndarray):
            lane_axes.append(axis)
            walk = _walk_of(start)
            whole = whole and walk.low >= 0 and walk.high + lengths[axis] <= extents[axis]
            listed = listed or walk.pace is None
            first.append(walk.first)
            step.append(walk.pace or 0)
        else:
            whole = whole and start >= 0 and start + lengths[axis] <= extents[axis]
            first.append(start)
            step.append(0)
    if whole:
        piece = _piece(None, size, None, lengths, starts, first, step, bool(lane_axes), listed)
        return Window(size, lengths, (piece,), False)
    return _masked(extents, starts, lengths, size, lane_axes)


@value
class _Walk:
    """What the starts of the blocks are: the first, what each adds (None: no progression), the ends of their range."""

    starts: Array
    first: int
    pace: int | None
    low: int
    high: int


_walks: dict[int, _Walk] = {}  # by identity: a loop uses the same starts again and again, and nobody changes them


def _walk_of(starts: Array) -> _Walk:
    known = _walks.get(id(starts))
    if known is not None and known.starts is starts:
        return known
    first = int(starts[0])
    pace: int | None = int(starts[1]) - first if len(starts) > 1 else 0
    if np.array_equal(starts, first + pace * _counting(len(starts))):
        last = int(starts[-1])
        walk = _Walk(starts, first, pace, min(first, last), max(first, last))
    else:
        walk = _Walk(starts, first, None, int(starts.min()), int(starts.max()))
    if len(_walks) >= 256:
        _walks.clear()
    _walks[id(starts)] = walk
    return walk


def _masked(
    extents: Sequence[int], starts: Sequence[Value], lengths: tuple[int, ...], size: int, lane_axes: list[int]
) -> Window:
    clipped: list[tuple[Value, Value]] = []  # per axis: first cell of the tile inside, how many
    for axis, start in enumerate(starts):
        length, extent = lengths[axis], extents[axis]
        if isinstance(start, np.ndarray):
            low = np.minimum(np.maximum(-start, 0), length)
            clipped.append((low, np.maximum(np.minimum(length, extent - start) - low, 0)))
        else:
            near = min(max(-start, 0), length)
            clipped.append((near, max(min(length, extent - start) - near, 0)))
    if any(not isinstance(count, np.ndarray) and count == 0 for _, count in clipped):
        return Window(size, lengths, (), True)
    groups: list[tuple[Array | None, tuple[tuple[int, int], ...]]] = []
    if not lane_axes:
        groups.append((None, tuple(clipped)))
    else:
        columns = [column for axis in lane_axes for column in clipped[axis]]
        keys = np.stack(columns, axis=1)
        kinds, member = np.unique(keys, axis=0, return_inverse=True)
        for kind, row in enumerate(kinds):
            by_axis: list[tuple[int, int]] = list(clipped)
            for place_, axis in enumerate(lane_axes):
                by_axis[axis] = (int(row[2 * place_]), int(row[2 * place_ + 1]))
            if all(count > 0 for _, count in by_axis):
                lanes = None if len(kinds) == 1 else np.flatnonzero(member.reshape(-1) == kind)
                groups.append((lanes, tuple(by_axis)))
    pieces = []
    for lanes, by_axis_ in groups:
        count = size if lanes is None else len(lanes)
        inner = tuple(slice(low, low + n) for low, n in by_axis_)
        lens = tuple(n for _, n in by_axis_)
        ours = [
            (start if lanes is None else start[lanes]) + low if isinstance(start, np.ndarray) else start + low
            for start, (low, _) in zip(starts, by_axis_)
        ]
        first = [int(start[0]) if isinstance(start, np.ndarray) else start for start in ours]
        step = [int(start[1]) - int(start[0]) if isinstance(start, np.ndarray) and count > 1 else 0 for start in ours]
        listed = any(
            isinstance(start, np.ndarray) and not np.array_equal(start, f + s * _counting(count))
            for start, f, s in zip(ours, first, step)
        )
        chosen: slice | Array | None = lanes
        if lanes is not None and len(lanes) == int(lanes[-1]) - int(lanes[0]) + 1:
            chosen = slice(int(lanes[0]), int(lanes[-1]) + 1)
        pieces.append(_piece(chosen, count, inner, lens, ours, first, step, bool(lane_axes), listed))
    return Window(size, lengths, tuple(pieces), True)


def _piece(
    lanes: slice | Array | None,
    count: int,
    inner: tuple[slice, ...] | None,
    lengths: tuple[int, ...],
    starts: Sequence[Value],
    first: list[int],
    step: list[int],
    moves: bool,
    listed: bool,
) -> Piece:
    if listed:
        every = tuple(s if isinstance(s, np.ndarray) else np.full(count, s, np.int64) for s in starts)
        return Piece(lanes, count, inner, lengths, tuple(first), None, every)
    # Lanes that all start at one place still are lanes of their own only where they stand for some of the group.
    same = not moves or (lanes is None and not any(step))
    return Piece(lanes, count, inner, lengths, tuple(first), None if same else tuple(step), None)


_COUNT = np.arange(64, dtype=np.int64)


def _counting(size: int) -> Array:
    global _COUNT
    if len(_COUNT) < size:
        _COUNT = np.arange(2 * size, dtype=np.int64)
    return _COUNT[:size]


def _boxes(cells: Array, lengths: tuple[int, ...]) -> Array:
    """All boxes of `lengths` of a tensor: (number of starts by axis..., *lengths), overlapping, nothing copied."""
    counts = tuple(extent - n + 1 for extent, n in zip(cells.shape, lengths))
    return as_strided(cells, counts + lengths, cells.strides * 2)


def _progression(
    cells: Array, count: int, lengths: tuple[int, ...], first: tuple[int, ...], step: tuple[int, ...]
) -> Array:
    strides = cells.strides
    offset = lane = 0
    for f, s, width in zip(first, step, strides):
        offset += f * width
        lane += s * width
    if cells.flags.c_contiguous and cells.dtype != BF16:  # whose elements have no buffer format
        base: Any = cells
        return np.ndarray((count, *lengths), cells.dtype, base, offset, (lane, *strides))
    box = cells[tuple(slice(f, f + n) for f, n in zip(first, lengths))]
    return as_strided(box, (count, *lengths), (lane, *strides))

"""The cells of tile variables: how they are read and written, and that none is read which nothing has written.

A tile is (blocks or 1, *lengths). Where the blocks of a group name different cells, each block is taken by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phobos.runtime.reference import numbers
from phobos.runtime.reference.evaluation import dtype_of
from phobos.runtime.reference.faults import Fault, Site, cell
from phobos.runtime.reference.group import Group
from phobos.runtime.reference.machine import Place
from phobos.runtime.reference.numbers import Array, Value
from phobos.semantics import ir

Box = tuple[slice, ...]


def check_written(group: Group, variable: ir.Variable, written: Array, place: Place, box: Box | None = None) -> None:
    """Reading a cell that no statement has written is a fault."""
    seen = written if box is None else written[(slice(None), *box)]
    if seen.all():
        return
    spot = [int(i) for i in np.argwhere(~seen)[0]]
    lane = spot[0] if written.shape[0] == group.size else 0
    block = int(group.ids[lane])
    index = [n + (0 if box is None else int(box[axis].start)) for axis, n in enumerate(spot[1:])]
    name = variable.name or "the tile"
    raise Fault(
        "uninitialised",
        f"block {block} reads {cell(name, index)}, which nothing has written",
        Site(place.span, place.calls, f"`{name}` is read here"),
        blocks=(block,),
        others=(Site(variable.span, variable.calls, f"`{name}` is declared without a value here"),),
        help=f"give `{name}` a value where it is declared (`= 0.0`), or write all of it first",
    )


def clipped(starts: Sequence[int], lengths: Sequence[int], extents: Sequence[int]) -> tuple[Box, Box]:
    """Of a slice: the cells of the tile that exist, and where they stand in the slice."""
    cells, places = [], []
    for start, length, extent in zip(starts, lengths, extents):
        low = min(max(-start, 0), length)
        high = max(min(length, extent - start), low)
        cells.append(slice(start + low, start + high))
        places.append(slice(low, high))
    return tuple(cells), tuple(places)


def at_block(number: Value, lane: int) -> int:
    """A number of one block of the group."""
    return int(number[lane]) if isinstance(number, np.ndarray) else number


def agree(number: Value) -> Value:
    """The one number where blocks agree after all."""
    if isinstance(number, np.ndarray) and (number == number[0]).all():
        return int(number[0])
    return number


def read_tile(
    group: Group, variable: ir.Variable, cells: Array, starts: Sequence[Value], lengths: tuple[int, ...], place: Place
) -> Array:
    """A slice of a tile variable: (blocks or 1, *lengths), 0 where it runs past the tile."""
    starts = [agree(start) for start in starts]
    written = group.written.get(variable) if group.written else None
    if any(isinstance(start, np.ndarray) for start in starts):
        result = np.zeros((group.size, *lengths), cells.dtype)
        for lane in range(group.size):
            source, target = clipped([at_block(start, lane) for start in starts], lengths, cells.shape[1:])
            row = lane if cells.shape[0] == group.size else 0
            if written is not None:
                check_written(group, variable, written, place, source)
            result[lane][target] = cells[row][source]
        return result
    source, target = clipped(starts, lengths, cells.shape[1:])
    if written is not None:
        check_written(group, variable, written, place, source)
    inside = cells[(slice(None), *source)]
    if inside.shape[1:] == lengths:
        return inside
    result = np.zeros((cells.shape[0], *lengths), cells.dtype)
    result[(slice(None), *target)] = inside
    return result


def read_tile_point(group: Group, variable: ir.Variable, cells: Array, index: Sequence[Value], place: Place) -> Value:
    """One cell of a tile variable: a scalar, one a block where blocks differ. A cell outside is a fault."""
    name = variable.name or "the tile"
    group.machine.check_point(group, name, cells.shape[1:], index, place)
    lanes: Any = slice(None)
    if any(isinstance(number, np.ndarray) for number in index):
        lanes = np.arange(group.size) if cells.shape[0] == group.size else 0
    written = group.written.get(variable) if group.written else None
    if written is not None:
        rows: Any = np.arange(group.size) if written.shape[0] == group.size else 0
        if not np.all(written[(rows, *index)]):
            box = tuple(slice(int(np.min(number)), int(np.max(number)) + 1) for number in index)
            check_written(group, variable, written, place, box)
    found = cells[(lanes, *index)]
    if found.ndim == 0:
        return numbers.python(found[()], dtype_of(variable.type))
    if len(found) == 1:
        return numbers.python(found[0], dtype_of(variable.type))
    return found.copy()


def owned(group: Group, variable: ir.Variable, per_block: bool) -> Array:
    """The cells of a tile variable, to be written in place; one tile a block where blocks will differ."""
    held: Array = group.env[variable]
    if per_block and held.shape[0] != group.size:
        held = np.repeat(held, group.size, axis=0)
        group.env[variable] = held
    return held


def mark(group: Group, variable: ir.Variable, lanes: Any, box: tuple[Any, ...], per_block: bool) -> None:
    """Note that the cells `box` of the blocks at `lanes` are written; once all are, nothing is noted any more."""
    mask = group.written.get(variable)
    if mask is None:
        return
    if per_block and mask.shape[0] != group.size:
        mask = np.repeat(mask, group.size, axis=0)
        group.written[variable] = mask
    mask[(lanes, *box)] = True
    if mask.all():
        del group.written[variable]

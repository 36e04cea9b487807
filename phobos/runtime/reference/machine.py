"""What all blocks of one run share: tensors, sizes, the grid; and every way to touch a tensor.

Each access is bounds-checked or masked here, told to the race detector when there is one, and told to the
watch of a block that goes round a `while`, which is how a run that cannot go on is recognised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from phobos.diagnostic import Span
from phobos.runtime.reference.faults import Fault, Site, cell
from phobos.runtime.reference.group import Group
from phobos.runtime.reference.numbers import DTYPES, Array, Value, bits, python, wrap
from phobos.runtime.reference.windows import Piece, Window, part, window
from phobos.semantics.program import Program
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.reference.code import Code


@value
class Place:
    """An access in the text, for the messages of faults: its span, calls, and its tensor's name."""

    span: Span
    calls: tuple[Span, ...]
    name: str


class Buffer:
    """A tensor's cells: a NumPy array of its element type, C-contiguous or with a row pitch."""

    __slots__ = ("array", "dtype", "extents", "name", "shadow", "tracked")

    def __init__(self, name: str, dtype: str, array: Array) -> None:
        self.name = name
        self.dtype = dtype
        self.array = array
        self.extents: tuple[int, ...] = array.shape
        self.tracked = False
        self.shadow: Any = None


class Detector(Protocol):
    """A race detector. `who` are the ids of the blocks of a piece."""

    def read(self, group: Group, buffer: Buffer, piece: Piece, who: Array, place: Place) -> None: ...

    def write(self, group: Group, buffer: Buffer, piece: Piece, who: Array, values: Value, place: Place) -> None: ...

    def atomic(self, group: Group, buffer: Buffer, index: int, place: Place) -> None: ...

    def barrier(self) -> None: ...


class Machine:
    """One kernel of a run. `dims`, `params` and `grid` are numbers; `buffers` are by tensor name.

    Where kernels run side by side, `code` is that of all of them: this one begins at `start`, and its blocks are
    numbered from `first` on.
    """

    def __init__(
        self,
        program: Program,
        code: Code,
        grid: tuple[int, int, int],
        dims: Mapping[str, int],
        params: Mapping[str, Value],
        buffers: Mapping[str, Buffer],
        start: int = 0,
        first: int = 0,
    ) -> None:
        self.program = program
        self.code = code
        self.start = start
        self.first = first
        self.grid = grid
        self.blocks = grid[0] * grid[1] * grid[2]
        self.dims = dict(dims)
        self.params = dict(params)
        self.buffers = dict(buffers)
        self.detector: Detector | None = None
        self.watching = False  # some block runs by itself, so changes of memory matter to `spin` watches
        self.changed: Any = None  # called with (group, buffer, piece) when memory changes and `watching`
        self.assumed: dict[Any, tuple[bytes, int, Value]] = {}  # by statement and how often a block came there

    # --- slices -------------------------------------------------------------------------------------------

    def load(
        self, group: Group, buffer: Buffer, starts: Sequence[Value], lengths: tuple[int, ...], place: Place
    ) -> Array:
        """The tile at a slice: (blocks or 1, *lengths), 0 where masked. May be a view of memory."""
        where = window(buffer.extents, starts, lengths, group.size)
        self._reads(group, buffer, where, place)
        return where.read(buffer.array)

    def _reads(self, group: Group, buffer: Buffer, where: Window, place: Place) -> None:
        if buffer.tracked and self.detector is not None:
            for piece in where.pieces:
                self.detector.read(group, buffer, piece, _who(group, piece), place)
        if group.spin is not None:
            for piece in where.pieces:
                group.spin.read(buffer, piece)

    def store(
        self,
        group: Group,
        buffer: Buffer,
        starts: Sequence[Value],
        lengths: tuple[int, ...],
        values: Array,
        place: Place,
    ) -> None:
        """Store a tile (blocks or 1, *lengths) of the buffer's type to a slice; masked cells are skipped."""
        self.put(group, buffer, window(buffer.extents, starts, lengths, group.size), values, place)

    def put(self, group: Group, buffer: Buffer, where: Window, values: Array, place: Place) -> None:
        if (buffer.tracked and self.detector is not None) or self.watching:
            if np.may_share_memory(buffer.array, values):
                values = values.copy()  # they are looked at again when some cells have changed
            for piece in where.pieces:
                box = part(values, piece)
                if self.detector is not None and buffer.tracked:
                    self.detector.write(group, buffer, piece, _who(group, piece), box, place)
                if self.watching and (bits(piece.read(buffer.array)) != bits(np.asarray(box))).any():
                    self.changed(group, buffer, piece)
                piece.write(buffer.array, box)
            return
        where.write(buffer.array, values)

    # --- points -------------------------------------------------------------------------------------------

    def check_point(
        self, group: Group, name: str, extents: Sequence[int], index: Sequence[Value], place: Place
    ) -> None:
        """Out-of-bounds is a fault, and names the first block and index that are."""
        for axis, (number, extent) in enumerate(zip(index, extents)):
            if isinstance(number, np.ndarray):
                outside = (number < 0) | (number >= extent)
                if outside.any():
                    lane = int(np.flatnonzero(outside)[0])
                    self._outside(group, name, extents, index, axis, lane, place)
            elif not 0 <= number < extent:
                self._outside(group, name, extents, index, axis, 0, place)

    def _outside(
        self,
        group: Group,
        name: str,
        extents: Sequence[int],
        index: Sequence[Value],
        axis: int,
        lane: int,
        place: Place,
    ) -> None:
        numbers = [int(i[lane]) if isinstance(i, np.ndarray) else int(i) for i in index]
        block = int(group.ids[lane])
        at = f" on axis {axis}" if len(extents) > 1 else ""
        raise Fault(
            "out-of-bounds",
            f"block {block} accesses {cell(name, numbers)}, but the extent{at} is {extents[axis]}",
            Site(place.span, place.calls, f"index {numbers[axis]}, extent {extents[axis]}"),
            blocks=(block,),
            help="a point is not masked: bound the index with a condition, or use a slice `i :+ 1`, whose cells "
            "outside read as 0 and are not stored",
        )

    def load_point(self, group: Group, buffer: Buffer, index: Sequence[Value], place: Place) -> Value:
        """One element for each block, as the buffer holds it."""
        self.check_point(group, buffer.name, buffer.extents, index, place)
        if group.spin is not None or (buffer.tracked and self.detector is not None):
            self._reads(group, buffer, window(buffer.extents, index, (1,) * len(index), group.size), place)
        if any(isinstance(number, np.ndarray) for number in index):
            return buffer.array[tuple(index)]
        return python(buffer.array[tuple(index)], buffer.dtype)

    def store_point(self, group: Group, buffer: Buffer, index: Sequence[Value], element: Value, place: Place) -> None:
        """Once for each block, in the order of their ids."""
        self.check_point(group, buffer.name, buffer.extents, index, place)
        if (buffer.tracked and self.detector is not None) or self.watching:
            rank = len(index)
            spot = window(buffer.extents, index, (1,) * rank, group.size)
            values = np.asarray(element, DTYPES[buffer.dtype]).reshape((-1,) + (1,) * rank)
            self.put(group, buffer, spot, values, place)
            return
        if any(isinstance(number, np.ndarray) for number in index):
            buffer.array[tuple(index)] = element
        else:
            buffer.array[tuple(index)] = element[-1] if isinstance(element, np.ndarray) else element

    def gather(self, group: Group, buffer: Buffer, index: Array, place: Place) -> Array:
        """Elements of a `[n]` or `[1, n]` tensor at the indices of a tile."""
        extent = buffer.extents[-1]
        check_gather(group, buffer.name, extent, index, place)
        if group.spin is not None or (buffer.tracked and self.detector is not None):
            size = index.size // index.shape[0]
            spots = index.reshape(-1).astype(np.int64)
            who = np.repeat(group.ids, size)
            if index.shape[0] != group.size:
                spots = np.tile(spots, group.size)
            rank = len(buffer.extents)
            starts = (spots,) if rank == 1 else (np.zeros_like(spots), spots)
            piece = Piece(None, len(spots), None, (1,) * rank, (0,) * rank, None, starts)
            if buffer.tracked and self.detector is not None:
                self.detector.read(group, buffer, piece, who, place)
            if group.spin is not None:
                group.spin.read(buffer, piece)
        return buffer.array.reshape(-1)[index]

    # --- atomics ------------------------------------------------------------------------------------------

    def atomic(
        self,
        group: Group,
        buffer: Buffer,
        kind: str,
        index: Value,
        operands: Sequence[Value],
        used: bool,
        place: Place,
    ) -> Value:
        """The old value for each block; the blocks of a group one after another, in the order of their ids."""
        full = (index,) if len(buffer.extents) == 1 else (index, 0)
        self.check_point(group, buffer.name, buffer.extents, full, place)
        cells = buffer.array if buffer.array.ndim == 1 else buffer.array[:, 0]
        if group.size == 1:
            return self._atomic_once(group, buffer, cells, kind, int(index), [int(o) for o in operands], used, place)
        lanes = range(group.size)
        at = [int(i) for i in np.broadcast_to(index, group.size)]
        values = [[int(o) for o in np.broadcast_to(operand, group.size)] for operand in operands]
        old = [
            self._atomic_once(group, buffer, cells, kind, at[lane], [v[lane] for v in values], used, place)
            for lane in lanes
        ]
        return np.asarray(old, np.int32)

    def _atomic_once(
        self,
        group: Group,
        buffer: Buffer,
        cells: Array,
        kind: str,
        at: int,
        operands: Sequence[int],
        used: bool,
        place: Place,
    ) -> int:
        old = int(cells[at])
        if kind == "add":
            new = wrap(old + operands[0], "i32")
        else:
            new = wrap(operands[1], "i32") if old == wrap(operands[0], "i32") else old
        if self.detector is not None:
            self.detector.atomic(group, buffer, at, place)
        if new != old:
            if self.watching:
                self.changed(group, buffer, _spot(buffer, at))
            cells[at] = new
        if group.spin is not None and used:
            group.spin.read(buffer, _spot(buffer, at))
        return old


def check_gather(group: Group, name: str, extent: int, index: Array, place: Place) -> None:
    """Raise a Fault where an index is outside a table of `extent` cells; `index` is (blocks or 1, *shape)."""
    outside = (index < 0) | (index >= extent)
    if outside.any():
        spot = tuple(int(i) for i in np.argwhere(outside)[0])
        block = int(group.ids[spot[0] if index.shape[0] == group.size else 0])
        raise Fault(
            "out-of-bounds",
            f"block {block} gathers {cell(name, [int(index[spot])])}, but the table has {extent} elements",
            Site(
                place.span,
                place.calls,
                f"index {int(index[spot])} at cell [{', '.join(map(str, spot[1:]))}] of the indices",
            ),
            blocks=(block,),
            help="bring the indices into the table before `gather`, with `where` for instance",
        )


def _who(group: Group, piece: Piece) -> Array:
    return group.ids if piece.lanes is None else group.ids[piece.lanes]


def _spot(buffer: Buffer, at: int) -> Piece:
    rank = len(buffer.extents)
    return Piece(None, 1, None, (1,) * rank, (at, 0)[:rank], None, None)

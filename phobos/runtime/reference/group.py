"""A group of blocks that stand at one place of the program, and its taking apart and putting together.

Everything a block owns is here: its place (`pc`), its variables, which tile cells it has written. A scalar
or tile that is the same for all blocks of the group is held once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from phobos.runtime.reference.numbers import DTYPES, Array, Value
from phobos.semantics import ir

if TYPE_CHECKING:
    from phobos.runtime.reference.machine import Machine

Key = Any
"""An `ir.Variable`, or (statement, part) for what a loop remembers."""


class Split(Exception):
    """Blocks of the group differ where one answer is needed: take it apart by `keys`, one a block, and try again."""

    def __init__(self, keys: Array) -> None:
        super().__init__("blocks differ")
        self.keys = keys


class Group:
    """`ids` are linear block numbers, ascending, counted over all kernels that run side by side.

    `env` maps a variable to its value (see `numbers`). A view's value is the tuple of its starts and lengths.
    `written` holds, for a tile declared without a value, which of its cells have one; a tile that is absent there is
    written all over.
    """

    __slots__ = (
        "checkpoint",
        "clock",
        "coordinates",
        "env",
        "ids",
        "left_at",
        "limit",
        "machine",
        "pc",
        "rounds",
        "size",
        "solo",
        "spin",
        "stuck",
        "written",
    )

    def __init__(self, machine: Machine, ids: Array, pc: int = 0) -> None:
        self.machine = machine
        self.ids = ids
        self.size = len(ids)
        self.pc = pc
        self.env: dict[Key, Value] = {}
        self.written: dict[Key, Array] = {}
        self.clock: Value = 0  # steps since the last barrier, where a trace counts them (`steps`)
        self.solo = False  # has run by itself, under the scheduler, in this phase
        self.rounds = 0  # of `while` in this phase
        self.left_at: Any = None  # the statement that ended it
        self.spin: Any = None  # a `spinning.Watch` while it runs by itself in a program with `while`
        self.stuck = False
        self.checkpoint: Any = None
        self.limit = 1
        x, y, _ = machine.grid
        if self.size == 1:
            n = int(ids[0]) - machine.first
            self.coordinates: tuple[Value, Value, Value] = (n % x, n // x % y, n // (x * y))
        else:
            local = ids - machine.first if machine.first else ids
            self.coordinates = (_same(local % x), _same(local // x % y), _same(local // (x * y)))

    def decide(self, condition: Value) -> bool:
        """A condition as one answer for the whole group."""
        if isinstance(condition, np.ndarray):
            first = bool(condition[0])
            if (condition == first).all():
                return first
            raise Split(condition)
        return bool(condition)

    def one(self, number: Value) -> int:
        """A number as one answer for the whole group."""
        if isinstance(number, np.ndarray):
            first = int(number[0])
            if (number == first).all():
                return first
            raise Split(number)
        return int(number)

    def take(self, lanes: Array, fresh_copies: bool) -> Group:
        """The blocks at positions `lanes`, as a group of their own at the same place.

        `fresh_copies`: tiles that all blocks share are copied, as another group keeps the originals.
        """
        consecutive = int(lanes[-1]) - int(lanes[0]) + 1 == len(lanes)
        chosen: Any = slice(int(lanes[0]), int(lanes[-1]) + 1) if consecutive else lanes
        part = Group(self.machine, self.ids[chosen], self.pc)
        part.solo, part.rounds, part.limit = self.solo, self.rounds, self.limit
        single = len(lanes) == 1
        part.clock = _take(self.clock, self.size, chosen, single, False)
        mutable = self.machine.code.mutable
        for key, held in self.env.items():
            part.env[key] = _take(held, self.size, chosen, single, fresh_copies and key in mutable)
        for key, mask in self.written.items():
            part.written[key] = mask[chosen].copy() if mask.shape[0] == self.size else mask.copy()
        return part

    def split(self, keys: Array) -> list[Group]:
        """One group for each value of `keys`, in the order of their first blocks."""
        if keys.dtype.kind == "f":
            keys = keys.view(f"u{keys.dtype.itemsize}")
        _, first, member = np.unique(keys, return_index=True, return_inverse=True)
        parts = []
        for number, kind in enumerate(np.argsort(first)):
            parts.append(self.take(np.flatnonzero(member == kind), fresh_copies=number > 0))
        return parts

    def singles(self) -> list[Group]:
        if self.size == 1:
            return [self]
        return [self.take(np.asarray([lane]), fresh_copies=lane > 0) for lane in range(self.size)]

    def prune(self) -> None:
        """Forget variables whose scope does not hold the place where the group stands."""
        scope = self.machine.code.scope[self.pc]
        for key in [key for key in self.env if key not in scope]:
            del self.env[key]
        for key in [key for key in self.written if key not in scope]:
            del self.written[key]


def merge(groups: Sequence[Group]) -> Group:
    """Groups that stand at one place as one."""
    if len(groups) == 1:
        return groups[0]
    groups = sorted(groups, key=lambda group: int(group.ids[0]))
    for group in groups:
        group.prune()
    first = groups[0]
    ids = np.concatenate([group.ids for group in groups])
    order = None if (ids[1:] > ids[:-1]).all() else np.argsort(ids)
    whole = Group(first.machine, ids if order is None else ids[order], first.pc)
    whole.solo = any(group.solo for group in groups)
    whole.rounds = max(group.rounds for group in groups)
    sizes = [group.size for group in groups]
    whole.clock = _join([group.clock for group in groups], sizes, order, DTYPES["index"])
    for key in first.env:
        if all(key in group.env for group in groups):
            whole.env[key] = _join([group.env[key] for group in groups], sizes, order, _element(key))
    for key in {key for group in groups for key in group.written}:
        if key in whole.env:
            shape = whole.env[key].shape[1:]
            masks = [group.written.get(key, np.ones((1, *shape), np.bool_)) for group in groups]
            whole.written[key] = _join(masks, sizes, order, np.dtype(np.bool_))
    return whole


def _same(numbers: Array) -> Value:
    first = int(numbers[0])
    return first if (numbers == first).all() else numbers


def _take(held: Value, size: int, chosen: Any, single: bool, copy: bool) -> Value:
    if isinstance(held, tuple):
        return tuple(_take(part, size, chosen, single, False) for part in held)
    if not isinstance(held, np.ndarray):
        return held
    if held.ndim == 1:
        picked = held[chosen]
        return picked[0].item() if single and picked.dtype.kind in "iub" else picked[0] if single else picked
    if held.shape[0] == 1:
        return held.copy() if copy else held
    return held[chosen]


def _element(key: Key) -> np.dtype[Any]:
    """The element type of a scalar held under `key`, once it stands for several blocks."""
    if isinstance(key, ir.Variable) and isinstance(key.type, (ir.ScalarT, ir.TileT)) and key.kind != "view":
        return DTYPES[key.type.dtype]
    return DTYPES["index"]


def _join(parts: list[Value], sizes: list[int], order: Array | None, dtype: np.dtype[Any]) -> Value:
    head = parts[0]
    if isinstance(head, tuple):
        return tuple(_join([part[k] for part in parts], sizes, order, dtype) for k in range(len(head)))
    if any(isinstance(part, np.ndarray) and part.ndim > 1 for part in parts):
        if all(part.shape[0] == 1 for part in parts) and all(_same_cells(part, head) for part in parts):
            return head
        rows = [
            part if part.shape[0] == n else np.broadcast_to(part, (n, *part.shape[1:])) for n, part in zip(sizes, parts)
        ]
        whole = np.concatenate(rows)
    else:
        if not any(isinstance(part, np.ndarray) for part in parts) and all(_same_bits(part, head) for part in parts):
            return head
        whole = np.concatenate(
            [part if isinstance(part, np.ndarray) else np.full(n, part, dtype) for n, part in zip(sizes, parts)]
        )
    return whole if order is None else whole[order]


def _same_bits(left: Value, right: Value) -> bool:
    if isinstance(left, np.generic):
        return bool(left.tobytes() == right.tobytes())
    return bool(left == right)


def _same_cells(left: Array, right: Array) -> bool:
    return left is right or (left.nbytes <= 4096 and left.tobytes() == right.tobytes())

"""A small launch carried out: memory, the turns of its blocks from barrier to barrier, and where they met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import lcm, prod

from phobos.semantics import ir
from phobos.semantics.clocks import Clocks, Moment, ordered
from phobos.semantics.grid_constants import grid_constants_of
from phobos.semantics.program import Program
from phobos.semantics.rehearsed_block import RunningBlock
from phobos.semantics.rehearsed_numbers import (
    FLOATS,
    Refused,
    Scalar,
    Stop,
    kept,
)
from phobos.semantics.values import statements_in
from phobos.value import value

MOST_WORK = 8_000  # elements computed and statements run, in all blocks
MOST_ALIKE = 4  # blocks that touch one cell by one access and are told apart, and values of each

Place = tuple[ir.Statement, str]  # an access: a statement, and "load", "store" or "atomic"
Pair = frozenset[Place]  # one, or two
Touch = tuple[ir.Statement, str, ir.Access | None]  # a place, and which of its loads
Who = tuple[int, Moment]  # a block by its number, and what it has heard of others
Contents = Callable[[int, int, bool], Scalar]  # of a tensor's number, a cell's, and whether it holds floats


@value
class Met:
    """Two blocks that raced, and the cell at which they did."""

    blocks: tuple[tuple[int, ...], tuple[int, ...]]
    cell: tuple[int, ...]


@value
class Seen:
    """What happened in one launch: pairs of accesses by which two blocks met in a cell in one phase, and how it ended.

    `differ`: stores that put different numbers there; `unclear`: what they put there is not known. `races`: an example
    for each pair that nothing ordered and each barrier that the phase began at (None: the start of the kernel), stores
    of one number left out. `parted`: the barriers that some blocks wait at for ever, the others having ended or come
    to another. `stopped`: it was not carried to its end. `refused`: a step, a divisor or a point was none.
    `spent`: elements computed and statements run.
    """

    met: frozenset[Pair]
    differ: frozenset[Pair]
    unclear: frozenset[Pair]
    races: Mapping[tuple[frozenset[Touch], ir.Barrier | None], Met]
    parted: frozenset[ir.Barrier]
    stopped: bool
    refused: bool
    spent: int


class Launch:
    def __init__(
        self, program: Program, contents: Contents, usual: int, sizes: Mapping[str, int], counts: Sequence[int]
    ) -> None:
        self.program = program
        self.counts = counts
        self.sizes = dict.fromkeys(program.params, usual % 4)
        for name in program.dims:
            step = lcm(*(promise.tile for promise in program.promises if promise.dim == name)) or 1
            self.sizes[name] = -(-usual // step) * step
        self.sizes |= sizes
        self.constants = {name: constant.value for name, constant in program.constants.items()}
        self.constants |= {one.constant.name: counts[0] for one in grid_constants_of(program)}
        self.shapes = {
            name: tuple(self._extent(extent) for extent in tensor.extents) for name, tensor in program.tensors.items()
        }
        self.memory: dict[str, list[Scalar]] = {}
        barriers = {s.tensor.name for s in statements_in(program) if isinstance(s, ir.Barrier)}
        for number, (name, shape) in enumerate(self.shapes.items()):
            is_float = program.tensors[name].dtype in FLOATS
            size = prod(shape)
            if size > MOST_WORK:
                size = 0  # every read of it is of a value that is not known
            self.memory[name] = [0 if name in barriers else contents(number, flat, is_float) for flat in range(size)]
        self.work = MOST_WORK
        self.touched: dict[tuple[str, int], dict[Touch, dict[Who, list[Scalar]]]] = {}
        self.watched = {
            s.access.base.name
            for s in statements_in(program)
            if isinstance(s, ir.Store) and isinstance(s.access.base, ir.Tensor)
        }
        self.met: set[Pair] = set()
        self.differ: set[Pair] = set()
        self.unclear: set[Pair] = set()
        self.races: dict[tuple[frozenset[Touch], ir.Barrier | None], Met] = {}
        self.begins: ir.Barrier | None = None
        self.refused = False
        self.blocks: list[tuple[int, ...]] = []
        self.clocks: Clocks | None = None

    def _extent(self, extent: int | ir.Dim | ir.Constant) -> int:
        if isinstance(extent, int):
            return extent
        if isinstance(extent, ir.Dim):
            return self.sizes[extent.name]
        return self.constants[extent.name]

    def run(self, last_first: bool = False) -> Seen:
        """All blocks, from barrier to barrier, as long as they come to one and the same; of too many none.

        Between atomics they take turns: who waits for another by one sees what that one does.
        """
        if prod(self.counts) > MOST_WORK:
            return Seen(frozenset(), frozenset(), frozenset(), {}, frozenset(), True, False, 0)
        self.blocks = [*product(*(range(count) for count in self.counts))]
        if any(isinstance(s, ir.Atomic) for s in statements_in(self.program)):
            self.clocks = Clocks(len(self.blocks))
        order = [*enumerate(self.blocks)]
        if last_first:
            order.reverse()
        live = {one: RunningBlock(self, one, index).block(self.program.body) for one, index in order}
        parted: frozenset[ir.Barrier] = frozenset()
        stopped = False
        while live:
            at: set[ir.Barrier | None] = set()
            under_way = [*live]
            while under_way:
                for one in [*under_way]:
                    where: ir.Barrier | None = None
                    try:
                        where = next(live[one])
                        if where is None:
                            continue
                    except StopIteration:
                        del live[one]
                    except (Stop, ArithmeticError, RecursionError) as error:
                        self.refused |= isinstance(error, Refused)
                        stopped = True  # what the others do in this phase is seen all the same
                        del live[one]
                    under_way.remove(one)
                    at.add(where)
            self._judge()
            if stopped:
                break
            if len(at) > 1:
                parted = frozenset(barrier for barrier in at if barrier is not None)
                break
            self.begins = at.pop()
            if self.clocks is not None:
                self.clocks.barrier()
        return Seen(
            frozenset(self.met), frozenset(self.differ), frozenset(self.unclear), self.races, parted, stopped,
            self.refused, MOST_WORK - max(0, self.work),
        )  # fmt: skip

    def note(self, name: str, flat: int, touch: Touch, block: int, held: Scalar) -> None:
        """A block touches a cell. Of many blocks that do it in one way the first few stand for all."""
        by_block = self.touched.setdefault((name, flat), {}).setdefault(touch, {})
        who = block, () if self.clocks is None else self.clocks.moment(block)
        if who in by_block:
            if held not in by_block[who][-MOST_ALIKE:]:
                by_block[who].append(held)
        elif len(by_block) < MOST_ALIKE * (1 if self.clocks is None else MOST_ALIKE):
            by_block[who] = [held]

    def atomic(self, name: str, flat: int, statement: ir.Atomic, block: int) -> None:
        """A block does an atomic on a cell."""
        if name in self.watched:
            self.note(name, flat, (statement, "atomic", None), block, None)
        if self.clocks is not None:
            self.clocks.atomic(block, name, flat)

    def _judge(self) -> None:
        """Compare what blocks did to each cell in the phase that ends."""
        for (name, flat), touches in self.touched.items():
            kind = self.program.tensors[name].dtype
            alike: dict[tuple[bool, tuple[Who, ...]], list[tuple[int, Touch]]] = {}
            for at, (touch, by_block) in enumerate(touches.items()):
                alike.setdefault((touch[1] == "store", tuple(by_block)), []).append((at, touch))
            for (stores, mine), ones in alike.items():
                for (too, theirs), others in alike.items() if stores else ():
                    if all(_in_order(*each) for each in product(mine, theirs)):
                        continue
                    for (at, one), (behind, other) in product(ones, others):
                        told = frozenset((one, other)), self.begins
                        if (too and behind < at) or told in self.races:
                            continue
                        raced = self._raced((one, touches[one]), (other, touches[other]), kind)
                        if raced is not None:
                            self.races[told] = Met(raced, _cell_at(flat, self.shapes[name]))
        self.touched.clear()

    def _raced(
        self, store: tuple[Touch, dict[Who, list[Scalar]]], other: tuple[Touch, dict[Who, list[Scalar]]], kind: str
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Two blocks that touch a cell unordered, and where both store to it with two numbers."""
        pair = frozenset((store[0][:2], other[0][:2]))
        for mine, theirs in product(store[1], other[1]):
            if _in_order(mine, theirs):
                continue
            (block, _), (another, _) = mine, theirs
            self.met.add(pair)
            differ = other[0][1] != "store"
            if not differ:
                for number, number_ in product(store[1][mine], other[1][theirs]):
                    differ = self._compare(pair, number, number_, kind) or differ
            if differ:
                return self.blocks[block], self.blocks[another]
        return None

    def _compare(self, pair: Pair, one: Scalar, other: Scalar, kind: str) -> bool:
        """Whether two stores are seen to put different numbers there."""
        if one is None or other is None:
            self.unclear.add(pair)
        elif kept(one, kind) != kept(other, kind):
            self.differ.add(pair)
            return True
        return False

    def spend(self, amount: int) -> None:
        self.work -= amount
        if self.work < 0:
            raise Stop


def _in_order(one: Who, other: Who) -> bool:
    """Whether a touch of one comes before that of the other for certain."""
    return one[0] == other[0] or ordered(*one, *other)


def _cell_at(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The indices of a cell by its number, row by row."""
    cell: list[int] = []
    for extent in reversed(shape):
        cell.append(flat % extent)
        flat //= extent
    return tuple(reversed(cell))

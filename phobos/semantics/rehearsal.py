"""Small launches rehearsed: all blocks, statement by statement, with numbers for extents and contents.

What two stores put in a cell may be one number although no two expressions look alike: a value that was stored, read
back and stored again is the same value. And what tells two blocks apart at one branch need not do so in the end: they
may have left before, or never come there. Carrying it out shows both. One block runs after another from barrier to
barrier, with turns between atomics, which is an order that a launch may take. Floats are Python's, contents made up.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import product
from math import exp, isfinite, isnan, lcm, log, prod, sqrt, tanh
from operator import eq, ge, gt, le, lt, ne, neg

from phobos.semantics import ir
from phobos.semantics.clocks import Clocks, Moment, ordered
from phobos.semantics.grid_constants import grid_constants_of
from phobos.semantics.program import Program, fact
from phobos.semantics.values import statements_in, walk, written_tensors
from phobos.value import value

MOST_WORK = 8_000  # elements computed and statements run, in all blocks
MOST_LAUNCHES = 120  # of one program
MOST_TOGETHER = 20 * MOST_WORK  # of one program: a second or two
MOST_ALIKE = 4  # blocks that touch one cell by one access and are told apart, and values of each
WIDTHS = {"i8": (-1 << 7, 8), "u8": (0, 8), "i32": (-1 << 31, 32), "i64": (-1 << 63, 64), "index": (-1 << 63, 64)}
FLOATS = {"f16": "e", "f32": "f", "f64": "d", "bf16": "f"}

Scalar = int | float | None  # None: not known
Running = Generator[ir.Barrier | None, None, str]  # None: it has done an atomic, and others have their turn
Place = tuple[ir.Statement, str]  # an access: a statement, and "load", "store" or "atomic"
Pair = frozenset[Place]  # one, or two
Touch = tuple[ir.Statement, str, ir.Access | None]  # a place, and which of its loads
Who = tuple[int, Moment]  # a block by its number, and what it has heard of others
Contents = Callable[[int, int, bool], Scalar]  # of a tensor's number, a cell's, and whether it holds floats


@value
class Tile:
    """`cells` row by row."""

    shape: tuple[int, ...]
    cells: list[Scalar]


Value = Scalar | Tile


class _Stop(Exception):
    """The rehearsal cannot go on: too long, or what comes next is not known."""


class _Refused(_Stop):
    """A divisor is 0."""


def reads_what_is_written(program: Program, expression: ir.Expression) -> bool:
    """Whether a value may come from cells that the kernel itself writes, directly or through variables."""
    written = written_tensors(program)
    sources: dict[ir.Variable, list[ir.Expression]] = {}
    views: dict[ir.Variable, ir.Access] = {}
    atomic: set[ir.Variable | None] = set()
    for statement in statements_in(program):
        match statement:
            case ir.Define(variable=variable, value=stored) | ir.Assign(variable=variable, value=stored):
                sources.setdefault(variable, []).extend(() if stored is None else (stored,))
            case ir.Store(access=access, value=stored) if isinstance(access.base, ir.Variable):
                sources.setdefault(access.base, []).append(stored)
            case ir.DefineView(variable=variable, access=access):
                views[variable] = access
            case ir.Atomic(result=result):
                atomic.add(result)
    seen: set[ir.Variable] = set()
    stack = [expression]
    while stack:
        for one in walk(stack.pop()):
            base: ir.Tensor | ir.Variable | None = None
            if isinstance(one, ir.Load):
                base = one.access.base
            elif isinstance(one, ir.TensorRef):
                base = one.tensor
            elif isinstance(one, ir.VariableRef):
                base = views[one.variable].base if one.variable in views else one.variable
            if isinstance(base, ir.Tensor) and base.name in written:
                return True
            if isinstance(base, ir.Variable) and base not in seen:
                if base in atomic:
                    return True
                seen.add(base)
                stack += sources.get(base, [])
    return False


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


class Rehearsals:
    """The launches of one program that were carried out, each once, and only so many."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[object, Seen] = {}
        self._spent = 0

    def seen(
        self, which: int, sizes: Mapping[str, int], counts: Sequence[int], last_first: bool = False
    ) -> Seen | None:
        """One launch with the contents of that number; None where there were too many already.

        `sizes`: extents and parameters by name (others are made up), `counts` the grid. With `last_first` the last
        block has the first turn.
        """
        key = which, tuple(counts), tuple(sorted(sizes.items())), last_first
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_LAUNCHES or self._spent >= MOST_TOGETHER:
                return None
            known = self._known[key] = _Launch(self._program, *VARIANTS[which], sizes, counts).run(last_first)
            self._spent += known.spent
        return known

    def meeting(self, one: Place, other: Place, sizes: Mapping[str, int], counts: Sequence[int]) -> str:
        """What becomes of two accesses to one cell by two blocks, in one phase.

        "differ": they meet, and where both are stores with different numbers, for some contents; "equal": two stores
        put one and the same number there; "apart": they are never seen to meet; "unknown".
        """
        pair = frozenset((one, other))
        stores = one[1] == other[1] == "store"
        found = "apart"
        for which in range(len(VARIANTS)):
            seen = self.seen(which, sizes, counts)
            if seen is None or (pair in seen.unclear and pair not in seen.differ):
                return "unknown"
            if pair in (seen.differ if stores else seen.met):
                return "differ"
            if seen.stopped or seen.parted:
                return "unknown"
            found = "equal" if pair in seen.met else found
        return found


@fact
def rehearsals_of(program: Program) -> Rehearsals:
    """What was rehearsed of a program, filled as it is asked for."""
    return Rehearsals(program)


def _mixed(tensor: int, flat: int, is_float: bool) -> Scalar:
    return ((tensor * 331 + flat * 617 + 101) % 997) / 997 + 0.003 if is_float else flat


def _counted(tensor: int, flat: int, is_float: bool) -> Scalar:
    return float(flat * 3 + tensor * 50 - 7) if is_float else (flat + 1) % 3


def _nought(tensor: int, flat: int, is_float: bool) -> Scalar:
    return -((tensor * 97 + flat * 41 + 11) % 89) / 89 if is_float else 0


VARIANTS: tuple[tuple[Contents, int], ...] = ((_mixed, 8), (_counted, 3), (_nought, 13))
"""Contents, and the extents where nobody asks for one."""

NOUGHT = 2  # the contents with which counters begin at 0


class _Launch:
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
        live = {one: _Block(self, one, index).block(self.program.body) for one, index in order}
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
                    except (_Stop, ArithmeticError, RecursionError) as error:
                        self.refused |= isinstance(error, _Refused)
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
            for one, mine in touches.items():
                if one[1] != "store":
                    continue
                for other, theirs in touches.items():
                    told = frozenset((one, other)), self.begins
                    if told not in self.races:
                        raced = self._raced((one, mine), (other, theirs), kind)
                        if raced is not None:
                            self.races[told] = Met(raced, _cell_at(flat, self.shapes[name]))
        self.touched.clear()

    def _raced(
        self, store: tuple[Touch, dict[Who, list[Scalar]]], other: tuple[Touch, dict[Who, list[Scalar]]], kind: str
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Two blocks that touch a cell unordered, and where both store to it with two numbers."""
        pair = frozenset((store[0][:2], other[0][:2]))
        for (block, when), (another, then) in product(store[1], other[1]):
            if block == another or ordered(block, when, another, then):
                continue
            self.met.add(pair)
            differ = other[0][1] != "store"
            if not differ:
                for number, number_ in product(store[1][block, when], other[1][another, then]):
                    differ = self._compare(pair, number, number_, kind) or differ
            if differ:
                return self.blocks[block], self.blocks[another]
        return None

    def _compare(self, pair: Pair, one: Scalar, other: Scalar, kind: str) -> bool:
        """Whether two stores are seen to put different numbers there."""
        if one is None or other is None:
            self.unclear.add(pair)
        elif _kept(one, kind) != _kept(other, kind):
            self.differ.add(pair)
            return True
        return False

    def spend(self, amount: int) -> None:
        self.work -= amount
        if self.work < 0:
            raise _Stop


def _kept(number: int | float, kind: str) -> object:
    """A number as a cell of that type keeps it, not a number made equal to itself."""
    if kind in WIDTHS:
        return _wrapped(int(number), kind)
    try:
        return struct.pack(FLOATS.get(kind, "d"), number)
    except OverflowError:
        return "infinite", number > 0


def _of_width(number: int | float, kind: str) -> int | float:
    """What arithmetic gives: a whole number wraps where its type ends, and so cannot grow without end."""
    if isinstance(number, float) or (-1 << 31 <= number < 1 << 31 and kind not in ("i8", "u8")):
        return number
    return _wrapped(number, kind if kind in WIDTHS else "index")


def _wrapped(number: int, kind: str) -> int:
    low, bits = WIDTHS[kind]
    return (number - low) % (1 << bits) + low


class _Block:
    """One block of the launch, and what its variables hold."""

    def __init__(self, launch: _Launch, number: int, index: tuple[int, ...]) -> None:
        self.launch = launch
        self.number = number
        self.index = index
        self.held: dict[ir.Variable, Value] = {}
        self.views: dict[ir.Variable, tuple[ir.Access, list[range]]] = {}
        self.at: ir.Statement | None = None

    # --- statements -------------------------------------------------------------------------------

    def block(self, block: ir.Block) -> Running:
        """How control leaves it: fall, break, continue, leave or kernel."""
        for statement in block.statements:
            self.launch.spend(1)
            self.at = statement
            how = yield from self._statement(statement)
            if how != "fall":
                return how
        return "fall"

    def _statement(self, statement: ir.Statement) -> Running:
        match statement:
            case ir.Define(variable=variable, value=new):
                self.held[variable] = self._fitting(variable, None if new is None else self.value(new))
            case ir.DefineView(variable=variable, access=access):
                self.views[variable] = access, self._spans(access)
            case ir.Assign(variable=variable, op=op, value=new):
                result = self.value(new)
                if op is not None:
                    result = self._binary(op, self.held.get(variable), result, variable.type)
                self.held[variable] = self._fitting(variable, result)
            case ir.Store():
                self._store(statement)
            case ir.Barrier():
                yield statement
            case ir.Atomic(index=index, operands=operands, result=result_):
                old = self._atomic(statement, self.value(index), [self.value(one) for one in operands])
                if result_ is not None:
                    self.held[result_] = old
                yield None
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                return (yield from self.block(then if self._holds(condition) else otherwise))
            case ir.For() | ir.While():
                return (yield from self._loop(statement))
            case ir.Inline(body=body):
                how = yield from self.block(body)
                return "fall" if how == "leave" else how
            case ir.Break():
                return "break"
            case ir.Continue():
                return "continue"
            case ir.Leave(leaves_kernel=leaves_kernel):
                return "kernel" if leaves_kernel else "leave"
        return "fall"

    def _loop(self, statement: ir.For | ir.While) -> Running:
        current = end = step = 1
        if isinstance(statement, ir.For):
            current, end, step = (self._number(one) for one in (statement.lo, statement.hi, statement.step))
            if step <= 0:
                self.launch.refused = True
                raise _Stop
        while True:
            self.launch.spend(1)
            if isinstance(statement, ir.For):
                if current >= end:
                    return "fall"
                self.held[statement.variable] = current
                current += step
            else:
                yield from self.block(statement.prelude)
                self.at = statement
                if not self._holds(statement.condition):
                    return "fall"
            how = yield from self.block(statement.body)
            if how == "break":
                return "fall"
            if how not in ("fall", "continue"):
                return how

    def _fitting(self, variable: ir.Variable, new: Value) -> Value:
        """A value as a variable keeps it: a scalar fills a tile."""
        if isinstance(variable.type, ir.TileT):
            shape = self._shape(variable.type)
            if isinstance(new, Tile):
                return Tile(new.shape, [*new.cells])
            self.launch.spend(prod(shape))
            return Tile(shape, [new] * prod(shape))
        return new

    def _shape(self, kind: ir.TileT) -> tuple[int, ...]:
        if not all(isinstance(length, int) for length in kind.shape):
            raise _Stop
        return tuple(length for length in kind.shape if isinstance(length, int))

    def _store(self, statement: ir.Store) -> None:
        new = self.value(statement.value)
        access = statement.access
        spans = self._spans(access)
        shape, memory, name = self._base(access.base)
        if statement.op is not None:
            old = self._read(access, spans)
            new = self._binary(statement.op, old, new, statement.value.type)
        if isinstance(new, Tile):
            _demand_fits(new, tuple(map(len, spans)))
        for at, flat in self._cells(spans, shape):
            if flat is None or flat >= len(memory):
                self.launch.refused |= flat is None and access.is_point
                continue
            cell = new.cells[_place(at, new.shape)] if isinstance(new, Tile) else new
            memory[flat] = cell
            if name:
                self.launch.note(name, flat, (statement, "store", None), self.number, cell)

    def _atomic(self, statement: ir.Atomic, index: Value, operands: list[Value]) -> Scalar:
        kind, name = statement.kind, statement.tensor.name
        memory = self.launch.memory[name]
        if not isinstance(index, int) or not 0 <= index < len(memory):
            self.launch.refused |= isinstance(index, int) and bool(memory)
            return None
        self.launch.atomic(name, index, statement, self.number)
        old = memory[index]
        new = operands[-1]
        if not isinstance(old, int) or not all(isinstance(one, int) for one in operands):
            raise _Stop
        assert isinstance(new, int)
        if kind == "add":
            memory[index] = _wrapped(old + new, "i32")
        elif old == operands[0]:
            memory[index] = new
        return old

    # --- places -----------------------------------------------------------------------------------

    def _base(self, base: ir.Tensor | ir.Variable) -> tuple[tuple[int, ...], list[Scalar], str]:
        """Extents, cells and the name of a tensor (none for a tile)."""
        if isinstance(base, ir.Tensor):
            return self.launch.shapes[base.name], self.launch.memory[base.name], base.name
        held = self.held.get(base)
        if not isinstance(held, Tile):
            raise _Stop
        return held.shape, held.cells, ""

    def _spans(self, access: ir.Access) -> list[range]:
        """The indices on each axis."""
        spans: list[range] = []
        for axis, sub in enumerate(access.subs):
            if isinstance(sub, ir.PointSub):
                first, length = self._number(sub.index), 1
            else:
                first = self._number(sub.first)
                length = sub.static if sub.static is not None else self._number(sub.length)
                if sub.whole:
                    length = self._base(access.base)[0][axis]
            spans.append(range(first, first + max(0, length)))
        return spans

    def _cells(self, spans: list[range], shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int | None]]:
        """Each cell's place in the span, and in the tensor (None: outside)."""
        self.launch.spend(prod(map(len, spans)))
        for at in product(*(range(len(span)) for span in spans)):
            flat: int | None = 0
            for step, span, extent in zip(at, spans, shape):
                index = span[step]
                flat = None if flat is None or not 0 <= index < extent else flat * extent + index
            yield at, flat

    def _read(self, access: ir.Access, spans: list[range]) -> Value:
        shape, memory, name = self._base(access.base)
        outside = None if access.is_point else 0
        cells: list[Scalar] = []
        for _, flat in self._cells(spans, shape):
            cells.append(outside if flat is None else memory[flat] if flat < len(memory) else None)
            self.launch.refused |= flat is None and access.is_point
            if name in self.launch.watched and flat is not None and self.at is not None:
                self.launch.note(name, flat, (self.at, "load", access), self.number, None)
        return cells[0] if access.is_point else Tile(tuple(map(len, spans)), cells)

    # --- values -----------------------------------------------------------------------------------

    def _number(self, expression: ir.Expression) -> int:
        known = self.value(expression)
        if not isinstance(known, int):
            raise _Stop
        return known

    def _holds(self, condition: ir.Expression) -> bool:
        known = self.value(condition)
        if known is None or isinstance(known, Tile):
            raise _Stop
        return bool(known)

    def value(self, expression: ir.Expression) -> Value:
        launch = self.launch
        match expression:
            case ir.IntLiteral(value=number):
                return number
            case ir.FloatLiteral(value=literal):
                return literal
            case ir.BoolLiteral(value=known):
                return int(known)
            case ir.ConstantRef(constant=constant):
                return launch.constants[constant.name]
            case ir.DimRef(dim=dim):
                return launch.sizes[dim.name]
            case ir.ParamRef(param=param):
                given = launch.sizes[param.name]
                return float(given) + 0.25 if param.dtype in FLOATS else given
            case ir.BlockIndex(axis=axis):
                return self.index[axis]
            case ir.GridExtent(axis=axis):
                return launch.counts[axis]
            case ir.VariableRef(variable=variable):
                view = self.views.get(variable)
                return self.held.get(variable) if view is None else self._read(*view)
            case ir.Load(access=access):
                return self._read(access, self._spans(access))
            case ir.UnaryOp(op=op, operand=operand):
                return self._each(UNARY[op], self.value(operand))
            case ir.BinaryOp(op=op, left=left, right=right):
                return self._binary(op, self.value(left), self.value(right), expression.type)
            case ir.ShortCircuit(op=op, left=left, right=right):
                first = self._holds(left)
                return int(first) if first == (op == "||") else int(self._holds(right))
            case ir.Convert(operand=operand):
                dtype = getattr(expression.type, "dtype", "")
                return self._each(lambda x: _converted(x, dtype), self.value(operand))
            case ir.BuiltinCall(name=name, arguments=arguments):
                return self._call(name, [self.value(one) for one in arguments])
        return None

    def _each(self, compute: Callable[..., Scalar], *operands: Value) -> Value:
        """Element by element; an axis of one goes with any."""
        tiles = [one for one in operands if isinstance(one, Tile)]
        if not tiles:
            return None if any(one is None for one in operands) else compute(*operands)
        shape = tuple(max(lengths) for lengths in zip(*(tile.shape for tile in tiles)))
        for tile in tiles:
            _demand_fits(tile, shape)
        self.launch.spend(prod(shape))
        cells: list[Scalar] = []
        for at in product(*map(range, shape)):
            row = [one.cells[_place(at, one.shape)] if isinstance(one, Tile) else one for one in operands]
            cells.append(None if any(cell is None for cell in row) else compute(*row))
        return Tile(shape, cells)

    def _binary(self, op: str, left: Value, right: Value, kind: ir.Type) -> Value:
        dtype = getattr(kind, "dtype", "")
        if type(left) is int and type(right) is int:
            return _computed(op, left, right, dtype)
        return self._each(lambda x, y: _computed(op, x, y, dtype), left, right)

    def _call(self, name: str, arguments: list[Value]) -> Value:
        simple = ELEMENTWISE.get(name)
        if simple is not None:
            return self._each(simple, *arguments)
        tile = arguments[0]
        if name == "iota" and isinstance(tile, int):
            return Tile((1, tile), [*range(tile)])
        if not isinstance(tile, Tile) or len(tile.shape) != 2:
            return None
        rows, columns = tile.shape
        if name in ("rowsum", "rowmax"):
            fold: list[Scalar] = []
            for row in range(rows):
                cells = tile.cells[row * columns : (row + 1) * columns]
                known = [cell for cell in cells if cell is not None]
                fold.append(None if len(known) < columns else sum(known) if name == "rowsum" else max(known))
            self.launch.spend(rows * columns)
            return Tile((rows, 1), fold)
        if name == "transpose":
            return Tile((columns, rows), [tile.cells[i * columns + j] for j in range(columns) for i in range(rows)])
        if name == "flat":
            return Tile((1, rows * columns), [*tile.cells])
        if name in ("dot", "dot_t") and isinstance(arguments[1], Tile):
            return self._product(tile, arguments[1], name == "dot_t")
        return None

    def _product(self, a: Tile, b: Tile, turned: bool) -> Value:
        (rows, inner), columns = a.shape, b.shape[0 if turned else 1]
        if b.shape[1 if turned else 0] != inner:
            raise _Stop
        self.launch.spend(rows * inner * columns)
        cells: list[Scalar] = []
        for i, j in product(range(rows), range(columns)):
            pairs = [
                (a.cells[i * inner + k], b.cells[j * inner + k if turned else k * columns + j]) for k in range(inner)
            ]
            known = [x * y for x, y in pairs if x is not None and y is not None]
            cells.append(sum(known) if len(known) == inner else None)
        return Tile((rows, columns), cells)


def _demand_fits(tile: Tile, shape: tuple[int, ...]) -> None:
    """Raise _Stop where some length is neither that of the shape nor one: at such numbers the launch is refused."""
    if not all(length in (1, wanted) for length, wanted in zip(tile.shape, shape, strict=True)):
        raise _Stop


def _cell_at(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The indices of a cell by its number, row by row."""
    cell: list[int] = []
    for extent in reversed(shape):
        cell.append(flat % extent)
        flat //= extent
    return tuple(reversed(cell))


def _place(at: tuple[int, ...], shape: tuple[int, ...]) -> int:
    flat = 0
    for index, length in zip(at, shape):
        flat = flat * length + (index if length > 1 else 0)
    return flat


def _converted(number: int | float, dtype: str) -> Scalar:
    if dtype in FLOATS:
        return float(number)
    if dtype not in WIDTHS:
        return number
    if not isinstance(number, float):
        return _wrapped(number, dtype)
    low, bits = WIDTHS[dtype]
    high = low + (1 << bits) - 1
    if isnan(number):
        return 0
    return low if number <= low else high if number >= high else int(number)


def _computed(op: str, x: int | float, y: int | float, dtype: str) -> Scalar:
    match op:
        case "+":
            return _of_width(x + y, dtype)
        case "-":
            return _of_width(x - y, dtype)
        case "*":
            return _of_width(x * y, dtype)
        case "/" | "%":
            if isinstance(x, float) or isinstance(y, float):
                return x / y if y else None
            if not y:
                raise _Refused
            quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            return quotient if op == "/" else x - quotient * y
        case "<" | "<=" | ">" | ">=" | "==" | "!=":
            return int(COMPARISONS[op](x, y))
        case "&" | "&&":
            return int(x) & int(y)
        case "|" | "||":
            return int(x) | int(y)
        case "^":
            return int(x) ^ int(y)
        case "<<" if 0 <= y < 64:
            return _wrapped(int(x) << int(y), dtype if dtype in WIDTHS else "index")
        case ">>" if 0 <= y < 64:
            return int(x) >> int(y)
    return None


UNARY: dict[str, Callable[[int | float], Scalar]] = {"-": neg, "!": lambda x: int(not x), "~": lambda x: ~int(x)}
COMPARISONS: dict[str, Callable[[int | float, int | float], bool]] = {
    "<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne,
}  # fmt: skip
ELEMENTWISE: dict[str, Callable[..., Scalar]] = {
    "exp": exp,
    "log": lambda x: log(x) if x > 0 else None,
    "sqrt": lambda x: sqrt(x) if x >= 0 else None,
    "tanh": tanh,
    "round": lambda x: float(round(x)) if isfinite(x) else x,
    "pow": lambda x, y: x**y if x > 0 else None,
    "tmax": lambda x, y: x if x > y else y,
    "tmin": lambda x, y: x if x < y else y,
    "where": lambda c, x, y: x if c else y,
    "argsel": lambda va, vb, ia, ib: ia if va >= vb else ib,
}

__all__ = ["Rehearsals", "Seen", "reads_what_is_written", "rehearsals_of"]

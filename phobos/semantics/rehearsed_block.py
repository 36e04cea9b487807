"""One block of a rehearsed launch: its statements one after another, and what its variables hold."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from phobos.semantics import ir
from phobos.semantics.rehearsed_numbers import (
    ELEMENTWISE,
    FLOATS,
    UNARY,
    Scalar,
    Stop,
    Tile,
    Value,
    computed,
    converted,
    demand_fits,
    place_in,
    wrapped,
)

if TYPE_CHECKING:
    from phobos.semantics.rehearsed_launch import Launch

Steps = Generator[ir.Barrier | None, None, str]  # None: it has done an atomic, and others have their turn


class RunningBlock:
    """One block of the launch, and what its variables hold."""

    def __init__(self, launch: Launch, number: int, index: tuple[int, ...]) -> None:
        self.launch = launch
        self.number = number
        self.index = index
        self.held: dict[ir.Variable, Value] = {}
        self.views: dict[ir.Variable, tuple[ir.Access, list[range]]] = {}
        self.at: ir.Statement | None = None

    # --- statements -------------------------------------------------------------------------------

    def block(self, block: ir.Block) -> Steps:
        """How control leaves it: fall, break, continue, leave or kernel."""
        for statement in block.statements:
            self.launch.spend(1)
            self.at = statement
            how = yield from self._statement(statement)
            if how != "fall":
                return how
        return "fall"

    def _statement(self, statement: ir.Statement) -> Steps:
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

    def _loop(self, statement: ir.For | ir.While) -> Steps:
        current = end = step = 1
        if isinstance(statement, ir.For):
            current, end, step = (self._number(one) for one in (statement.lo, statement.hi, statement.step))
            if step <= 0:
                self.launch.refused = True
                raise Stop
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
            raise Stop
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
            demand_fits(new, tuple(map(len, spans)))
        for at, flat in self._cells(spans, shape):
            if flat is None or flat >= len(memory):
                self.launch.refused |= flat is None and access.is_point
                continue
            cell = new.cells[place_in(at, new.shape)] if isinstance(new, Tile) else new
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
            raise Stop
        assert isinstance(new, int)
        if kind == "add":
            memory[index] = wrapped(old + new, "i32")
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
            raise Stop
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
            raise Stop
        return known

    def _holds(self, condition: ir.Expression) -> bool:
        known = self.value(condition)
        if known is None or isinstance(known, Tile):
            raise Stop
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
                return self._each(lambda x: converted(x, dtype), self.value(operand))
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
            demand_fits(tile, shape)
        self.launch.spend(prod(shape))
        cells: list[Scalar] = []
        for at in product(*map(range, shape)):
            row = [one.cells[place_in(at, one.shape)] if isinstance(one, Tile) else one for one in operands]
            cells.append(None if any(cell is None for cell in row) else compute(*row))
        return Tile(shape, cells)

    def _binary(self, op: str, left: Value, right: Value, kind: ir.Type) -> Value:
        dtype = getattr(kind, "dtype", "")
        if type(left) is int and type(right) is int:
            return computed(op, left, right, dtype)
        return self._each(lambda x, y: computed(op, x, y, dtype), left, right)

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
            raise Stop
        self.launch.spend(rows * inner * columns)
        cells: list[Scalar] = []
        for i, j in product(range(rows), range(columns)):
            pairs = [
                (a.cells[i * inner + k], b.cells[j * inner + k if turned else k * columns + j]) for k in range(inner)
            ]
            known = [x * y for x, y in pairs if x is not None and y is not None]
            cells.append(sum(known) if len(known) == inner else None)
        return Tile((rows, columns), cells)

"""Expressions of the typed program as Python functions of a group of blocks.

`Expressions.of(expression)` compiles once; the function is then called for each group at each turn. What a
function returns is a `Value` of the expression's type: see `numbers`. Where blocks must agree and do not, it
raises `Split` before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phobos.runtime.reference import numbers
from phobos.runtime.reference.faults import Fault, Site, cell
from phobos.runtime.reference.group import Group, Split
from phobos.runtime.reference.machine import Place, check_gather
from phobos.runtime.reference.numbers import DTYPES, FLOATS, Array, Value, ZeroDivision
from phobos.semantics import ir
from phobos.value import value

Eval = Callable[[Group], Value]

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_SHORT = frozenset({"&&", "||"})
_MATH = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "round": np.rint}


class NotExecutable(Exception):
    """A part of the program that is checked but not executed; `what` as the user wrote it."""

    def __init__(self, what: str, node: ir.Expression | ir.Statement) -> None:
        super().__init__(what)
        self.what = what
        self.node = node


@value
class Where:
    """A compiled access: what gives its subscripts, and how long its slices are."""

    access: ir.Access
    place: Place
    firsts: tuple[Eval, ...]
    lengths: tuple[int | Eval, ...]  # of slices; () for points
    static: tuple[int, ...] | None  # the lengths, where all are known

    def index(self, group: Group) -> list[Value]:
        return [first(group) for first in self.firsts]

    def sizes(self, group: Group) -> tuple[int, ...]:
        if self.static is not None:
            return self.static
        return tuple(n if isinstance(n, int) else max(group.one(n(group)), 0) for n in self.lengths)


def rank_of(type_: ir.Type) -> int:
    return len(type_.shape) if isinstance(type_, ir.TileT) else 0


def dtype_of(type_: ir.Type) -> str:
    if isinstance(type_, ir.ErrorT):
        raise AssertionError("an expression in error reached the runtime")
    return type_.dtype


def spread(held: Value, rank: int) -> Value:
    """A scalar of several blocks, ready to stand beside tiles of `rank`."""
    if rank and isinstance(held, np.ndarray) and held.ndim == 1:
        return held.reshape((-1,) + (1,) * rank)
    return held


def is_fresh(expression: ir.Expression) -> bool:
    """Whether the value is a new array that nothing else holds."""
    if isinstance(expression, ir.Convert):
        return dtype_of(expression.type) != dtype_of(expression.operand.type) or is_fresh(expression.operand)
    if isinstance(expression, ir.BuiltinCall):
        held = expression.name in ("flat", "transpose", "iota") or expression.name in DTYPES
        return not held and rank_of(expression.type) > 0
    return isinstance(expression, (ir.BinaryOp, ir.UnaryOp)) and rank_of(expression.type) > 0


def cannot_fault(expression: ir.Expression) -> bool:
    """Whether evaluating it for a block that does not need it is harmless."""
    match expression:
        case ir.IntLiteral() | ir.FloatLiteral() | ir.BoolLiteral() | ir.ConstantRef() | ir.DimRef() | ir.ParamRef():
            return True
        case ir.BlockIndex() | ir.GridExtent():
            return True
        case ir.VariableRef(variable=variable):
            return isinstance(variable.type, ir.ScalarT)
        case ir.UnaryOp(operand=operand) | ir.Convert(operand=operand):
            return cannot_fault(operand)
        case ir.BinaryOp(op=op, left=left, right=right) if op not in ("/", "%"):
            return cannot_fault(left) and cannot_fault(right)
        case ir.ShortCircuit(left=left, right=right):
            return cannot_fault(left) and cannot_fault(right)
    return False


class Expressions:
    """Compiles expressions. `lazy` holds names bound to `flat(t)`, which read `t` at each use."""

    def __init__(self) -> None:
        self.lazy: dict[ir.Variable, Eval] = {}
        self.views: dict[ir.Variable, Where] = {}

    # --- accesses -------------------------------------------------------------------------------------------

    def where(self, access: ir.Access) -> Where:
        firsts: list[Eval] = []
        lengths: list[int | Eval] = []
        for sub in access.subs:
            if isinstance(sub, ir.PointSub):
                firsts.append(self.of(sub.index))
            else:
                firsts.append(self.of(sub.first))
                lengths.append(sub.static if sub.static is not None else self.of(sub.length))
        fixed = tuple(n for n in lengths if isinstance(n, int))
        static = fixed if len(fixed) == len(lengths) else None
        place = Place(access.span, access.calls, access.base.name)
        return Where(access, place, tuple(firsts), tuple(lengths), static)

    def read_slice(self, group: Group, where: Where, starts: Sequence[Value], lengths: tuple[int, ...]) -> Array:
        base = where.access.base
        if isinstance(base, ir.Tensor):
            machine = group.machine
            return machine.load(group, machine.buffers[base.name], starts, lengths, where.place)
        return read_tile(group, base, self.tile(group, base), starts, lengths, where.place)

    def tile(self, group: Group, variable: ir.Variable) -> Array:
        """The cells of a tile variable, wherever they are, without asking whether they were written."""
        if variable in self.lazy:
            return np.asarray(self.lazy[variable](group))
        if variable in self.views:
            return self._view(group, variable)
        held = group.env[variable]
        assert isinstance(held, np.ndarray)
        return held

    def _view(self, group: Group, variable: ir.Variable) -> Array:
        where = self.views[variable]
        rank = len(where.firsts)
        held = group.env[variable]
        return self.read_slice(group, where, held[:rank], tuple(group.one(n) for n in held[rank:]))

    # --- expressions ----------------------------------------------------------------------------------------

    def of(self, expression: ir.Expression) -> Eval:
        match expression:
            case ir.IntLiteral(value=number):
                if dtype_of(expression.type) in FLOATS:
                    held = numbers.literal(number, dtype_of(expression.type))
                    return lambda group: held
                return lambda group: number
            case ir.BoolLiteral(value=truth):
                return lambda group: truth
            case ir.FloatLiteral(value=real):
                element = numbers.literal(real, dtype_of(expression.type))
                return lambda group: element
            case ir.ConstantRef(constant=constant):
                fixed = constant.value
                return lambda group: fixed
            case ir.DimRef(dim=dim):
                name = dim.name
                return lambda group: group.machine.dims[name]
            case ir.ParamRef(param=param):
                return self._param(param.name, param.dtype, dtype_of(expression.type))
            case ir.BlockIndex(axis=axis):
                return lambda group: group.coordinates[axis]
            case ir.GridExtent(axis=axis):
                return lambda group: group.machine.grid[axis]
            case ir.ThreadValue(name=name):
                raise NotExecutable(name, expression)
            case ir.Unsupported(name=name):
                raise NotExecutable(f"{name}(..)", expression)
            case ir.VariableRef():
                return self._variable(expression)
            case ir.Load():
                return self._load(expression)
            case ir.UnaryOp():
                return self._unary(expression)
            case ir.BinaryOp():
                return self._binary(expression)
            case ir.ShortCircuit():
                return self._short_circuit(expression)
            case ir.Convert(operand=operand):
                inner = self.of(operand)
                source, target = dtype_of(operand.type), dtype_of(expression.type)
                if source == target:
                    return inner
                convert = numbers.convert
                return lambda group: convert(inner(group), source, target)
            case ir.BuiltinCall():
                return self._builtin(expression)
        raise NotExecutable(type(expression).__name__, expression)

    def _param(self, name: str, declared: str, wanted: str) -> Eval:
        if declared == wanted or (declared not in FLOATS and wanted not in FLOATS):
            return lambda group: group.machine.params[name]
        return lambda group: numbers.convert(group.machine.params[name], declared, wanted)

    def _variable(self, expression: ir.VariableRef) -> Eval:
        variable = expression.variable
        if variable in self.lazy:
            return self.lazy[variable]
        if variable in self.views:
            return lambda group: self._view(group, variable)
        if isinstance(variable.type, ir.ScalarT):
            return lambda group: group.env[variable]
        place = Place(expression.span, expression.calls, variable.name)

        def tile(group: Group) -> Value:
            if group.written and variable in group.written:
                check_written(group, variable, group.written[variable], place)
            return group.env[variable]

        return tile

    def _load(self, expression: ir.Load) -> Eval:
        access = expression.access
        where = self.where(access)
        target = dtype_of(expression.type)
        base = access.base
        if not access.is_point:
            if isinstance(base, ir.Tensor):
                name, place = base.name, where.place
                source = base.dtype

                def slices(group: Group) -> Value:
                    machine = group.machine
                    starts, lengths = where.index(group), where.sizes(group)
                    cells = machine.load(group, machine.buffers[name], starts, lengths, place)
                    return cells if source == target else numbers.convert_array(cells, source, target)

                return slices

            def cells_of_tile(group: Group) -> Value:
                return self.read_slice(group, where, where.index(group), where.sizes(group))

            return cells_of_tile
        if isinstance(base, ir.Tensor):
            name, place, source = base.name, where.place, base.dtype

            def point(group: Group) -> Value:
                machine = group.machine
                element = machine.load_point(group, machine.buffers[name], where.index(group), place)
                return numbers.convert(element, source, target)

            return point
        kept = dtype_of(base.type)

        def point_of_tile(group: Group) -> Value:
            element = read_tile_point(group, base, self.tile(group, base), where.index(group), where.place)
            return numbers.convert(element, kept, target)

        return point_of_tile

    def _unary(self, expression: ir.UnaryOp) -> Eval:
        inner = self.of(expression.operand)
        dtype = dtype_of(expression.type)
        match expression.op:
            case "-":
                if dtype in FLOATS:
                    nought = DTYPES[dtype].type(0)
                    return lambda group: np.subtract(nought, inner(group))
                return lambda group: numbers.integer("-", 0, inner(group), dtype)
            case "!":

                def negate(group: Group) -> Value:
                    truth = inner(group)
                    return np.logical_not(truth) if isinstance(truth, np.ndarray) else not truth

                return negate
        return lambda group: ~inner(group)

    def _binary(self, expression: ir.BinaryOp) -> Eval:
        left, right = self.of(expression.left), self.of(expression.right)
        op = expression.op
        rank = rank_of(expression.type)
        dtype = dtype_of(expression.left.type)
        # A scalar beside a tile may be an array of one element a block, which must not meet the tile's last axis.
        if rank and not rank_of(expression.left.type):
            left = _spread(left, rank)
        if rank and not rank_of(expression.right.type):
            right = _spread(right, rank)
        if op in _COMPARISONS:
            return lambda group: numbers.compare(op, left(group), right(group))
        if op in _SHORT:
            logical = np.logical_and if op == "&&" else np.logical_or
            return lambda group: logical(left(group), right(group))
        if dtype in FLOATS:
            if not rank or op == "%":
                return lambda group: numbers.floating(op, left(group), right(group))
            spare_left, spare_right = is_fresh(expression.left), is_fresh(expression.right)

            def tiles(group: Group) -> Value:
                a, b = left(group), right(group)
                out = None
                if spare_left and isinstance(a, np.ndarray) and _fits(b, a):
                    out = a
                elif spare_right and isinstance(b, np.ndarray) and _fits(a, b):
                    out = b
                return numbers.floating(op, a, b, out)

            return tiles
        result = dtype_of(expression.type)
        if op not in ("/", "%"):
            return lambda group: numbers.integer(op, left(group), right(group), result)

        def divide(group: Group) -> Value:
            try:
                return numbers.integer(op, left(group), right(group), result)
            except ZeroDivision as error:
                raise _division(group, expression, error.where, op) from None

        return divide

    def _short_circuit(self, expression: ir.ShortCircuit) -> Eval:
        left, right = self.of(expression.left), self.of(expression.right)
        stops = expression.op == "||"  # the value of the left side that decides
        harmless = cannot_fault(expression.right)
        logical = np.logical_or if stops else np.logical_and

        def evaluate(group: Group) -> Value:
            first = left(group)
            if isinstance(first, np.ndarray):
                if harmless:
                    return logical(first, right(group))
                if (first == first[0]).all():
                    first = bool(first[0])
                else:
                    raise Split(first)
            return stops if first == stops else right(group)

        return evaluate

    # --- built-ins ------------------------------------------------------------------------------------------

    def _builtin(self, expression: ir.BuiltinCall) -> Eval:
        name = expression.name
        rank = rank_of(expression.type)
        dtype = dtype_of(expression.type)
        if name == "gather":
            return self._gather(expression)
        arguments = [self.of(a) if rank_of(a.type) else _spread(self.of(a), rank) for a in expression.arguments]
        types = [dtype_of(a.type) for a in expression.arguments]
        if name in _MATH:
            return _math(name, arguments[0], dtype)
        match name:
            case "pow":
                return _power(arguments[0], arguments[1], dtype)
            case "tmax" | "tmin":
                return _choose_by(np.greater if name == "tmax" else np.less, arguments, dtype)
            case "argsel":
                va, vb, ia, ib = arguments
                return lambda group: _pick(va(group) >= vb(group), ia(group), ib(group), dtype)
            case "where":
                c, a, b = arguments
                return lambda group: _pick(c(group), a(group), b(group), dtype)
            case "iota":
                assert isinstance(expression.type, ir.TileT)
                count = expression.type.shape[-1]
                assert isinstance(count, int)
                row = np.arange(count, dtype=np.int64).reshape(1, 1, count)
                row.flags.writeable = False
                return lambda group: row
            case "rowmax":
                return _rows(arguments[0], types[0], lambda t: t.max(axis=-1, keepdims=True))
            case "rowsum":
                return _rows(arguments[0], types[0], lambda t: t.sum(axis=-1, keepdims=True, dtype=t.dtype))
            case "rowargmax":
                first = arguments[0]
                return lambda group: np.argmax(_wide(first(group), types[0]), axis=-1, keepdims=True).astype(
                    DTYPES[dtype]
                )
            case "cumsum":
                return _rows(arguments[0], types[0], lambda t: np.cumsum(t, axis=-2, dtype=t.dtype))
            case "tril":
                first = arguments[0]
                return lambda group: np.tril(first(group)) if types[0] != "bf16" else _lower(first(group))
            case "transpose":
                first = arguments[0]
                return lambda group: first(group).swapaxes(-1, -2)
            case "flat":
                first = arguments[0]
                return lambda group: _row(first(group))
            case "dot" | "dot_t":
                return _dot(arguments[0], arguments[1], types[0], types[1], dtype, name == "dot_t")
        if len(arguments) == 1 and name in DTYPES:
            inner, source = arguments[0], types[0]
            return lambda group: numbers.convert(inner(group), source, dtype)
        raise NotExecutable(f"{name}(..)", expression)

    def _gather(self, expression: ir.BuiltinCall) -> Eval:
        table, idx = expression.arguments
        index = self.of(idx)
        target = dtype_of(expression.type)
        if isinstance(table, ir.TensorRef):
            name, source = table.tensor.name, table.tensor.dtype
            place = Place(expression.span, expression.calls, name)

            def from_tensor(group: Group) -> Value:
                machine = group.machine
                found = machine.gather(group, machine.buffers[name], index(group), place)
                return numbers.convert_array(found, source, target)

            return from_tensor
        cells = self.of(table)
        source = dtype_of(table.type)
        spelled = table.variable.name if isinstance(table, ir.VariableRef) else "the table"
        place = Place(expression.span, expression.calls, spelled)

        def from_tile(group: Group) -> Value:
            held = cells(group)
            row = held.reshape(held.shape[0], -1)
            at = index(group)
            check_gather(group, spelled, row.shape[1], at, place)
            if row.shape[0] == 1:
                found = row[0][at]
            else:
                flat = np.broadcast_to(at, (row.shape[0], *at.shape[1:])).reshape(row.shape[0], -1)
                found = np.take_along_axis(row, flat.astype(np.int64), axis=1).reshape(row.shape[0], *at.shape[1:])
            return numbers.convert_array(found, source, target)

        return from_tile


# --- helpers of built-ins ---------------------------------------------------------------------------------------


def _spread(inner: Eval, rank: int) -> Eval:
    if not rank:
        return inner
    return lambda group: spread(inner(group), rank)


def _fits(other: Value, target: Array) -> bool:
    """Whether `target` has the shape of an operation on it and `other`."""
    if not isinstance(other, np.ndarray):
        return True
    if other.shape == target.shape:
        return True
    return other.ndim == target.ndim and all(n == 1 or n == m for n, m in zip(other.shape, target.shape))


def _wide(held: Value, dtype: str) -> Value:
    """Half precision as f32, in which it is computed."""
    if dtype in ("f16", "bf16"):
        return held.astype(np.float32)
    return held


def _math(name: str, inner: Eval, dtype: str) -> Eval:
    function = _MATH[name]
    if dtype in ("f16", "bf16"):
        target = DTYPES[dtype]
        return lambda group: function(inner(group).astype(np.float32)).astype(target)
    return lambda group: function(inner(group))


def _power(base: Eval, exponent: Eval, dtype: str) -> Eval:
    if dtype in ("f16", "bf16"):
        target = DTYPES[dtype]
        return lambda group: np.power(base(group).astype(np.float32), exponent(group).astype(np.float32)).astype(target)
    return lambda group: np.power(base(group), exponent(group))


def _pick(condition: Value, a: Value, b: Value, dtype: str) -> Value:
    if not isinstance(condition, np.ndarray):
        chosen = a if condition else b
        other = b if condition else a
        if isinstance(other, np.ndarray) and (not isinstance(chosen, np.ndarray) or chosen.shape != other.shape):
            shape = np.broadcast_shapes(np.shape(chosen), other.shape)
            return np.broadcast_to(np.asarray(chosen, DTYPES[dtype]), shape).copy()
        return chosen.copy() if isinstance(chosen, np.ndarray) else chosen
    if not isinstance(a, np.ndarray):
        a = np.asarray(a, DTYPES[dtype])
    if not isinstance(b, np.ndarray):
        b = np.asarray(b, DTYPES[dtype])
    return np.where(condition, a, b)


def _choose_by(test: Any, arguments: list[Eval], dtype: str) -> Eval:
    first, second = arguments

    def choose(group: Group) -> Value:
        a, b = first(group), second(group)
        condition = test(a, b)
        return _pick(condition if isinstance(condition, np.ndarray) else bool(condition), a, b, dtype)

    return choose


def _rows(inner: Eval, dtype: str, reduce: Callable[[Array], Array]) -> Eval:
    """A reduction in f32 or wider, rounded once; over contiguous rows, so that its order never depends on the group."""
    target = DTYPES[dtype]

    def run(group: Group) -> Value:
        held = _wide(inner(group), dtype)
        if held.strides[-1] != held.itemsize:
            held = np.ascontiguousarray(held)
        result = reduce(held)
        return result if result.dtype == target else result.astype(target)

    return run


def _lower(held: Array) -> Array:
    rows, columns = held.shape[-2:]
    keep = np.arange(columns)[None, :] <= np.arange(rows)[:, None]
    return np.where(keep, held, held.dtype.type(0))


def _row(held: Array) -> Array:
    return held.reshape(held.shape[0], 1, -1)


def _matrix(held: Array) -> Array:
    """Rows or columns contiguous, which is what BLAS takes; anything else is copied."""
    rows, columns = held.strides[-2:]
    size = held.itemsize
    if (columns == size and rows >= size * held.shape[-1]) or (rows == size and columns >= size * held.shape[-2]):
        return held
    return np.ascontiguousarray(held)


def _dot(left: Eval, right: Eval, a_type: str, b_type: str, dtype: str, transposed: bool) -> Eval:
    target = DTYPES[dtype]
    if a_type in FLOATS and b_type in FLOATS:
        work = np.dtype(np.float64) if "f64" in (a_type, b_type, dtype) else np.dtype(np.float32)

        def real(group: Group) -> Value:
            a, b = left(group), right(group)
            if a.dtype != work:
                a = a.astype(work)
            if b.dtype != work:
                b = b.astype(work)
            if b.shape[0] == 1:
                b = np.ascontiguousarray(b)  # one operand for all blocks is worth packing once
            if transposed:
                b = b.swapaxes(-1, -2)
            result = np.matmul(_matrix(a), _matrix(b))
            return (
                result
                if result.dtype == target
                else numbers.convert_array(result, work.name.replace("float", "f"), dtype)
            )

        return real
    narrow = a_type in ("i8", "u8") and b_type in ("i8", "u8")
    exact = np.dtype(np.float64) if narrow else np.dtype(np.int64)  # products of bytes sum exactly in f64, and by BLAS

    def whole(group: Group) -> Value:
        a, b = left(group).astype(exact), right(group).astype(exact)
        product = np.matmul(a, b.swapaxes(-1, -2) if transposed else b)
        return product.astype(np.int64).astype(target)

    return whole


def _division(group: Group, expression: ir.BinaryOp, where: Array | None, op: str) -> Fault:
    lane, inside = 0, ""
    if where is not None:
        spot = [int(i) for i in np.argwhere(where)[0]]
        lane = spot[0] if where.shape[0] == group.size else 0
        inside = f" at cell [{', '.join(map(str, spot[1:]))}] of the tile" if len(spot) > 1 else ""
    block = int(group.ids[lane])
    what = "divides by 0" if op == "/" else "takes a remainder by 0"
    return Fault(
        "division-by-zero",
        f"block {block} {what}{inside}",
        Site(expression.right.span, expression.right.calls, "this is 0"),
        blocks=(block,),
        help="integers have no infinity: test the divisor first; a cell past the end of a tensor reads as 0",
    )


# --- tiles ------------------------------------------------------------------------------------------------------


def check_written(
    group: Group, variable: ir.Variable, written: Array, place: Place, box: tuple[slice, ...] | None = None
) -> None:
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


def _clip(start: int, length: int, extent: int) -> tuple[slice, slice]:
    """Of a slice: the cells of the tile that exist, and where they stand in the result."""
    low = min(max(-start, 0), length)
    high = max(min(length, extent - start), low)
    return slice(start + low, start + high), slice(low, high)


def agree(group: Group, number: Value) -> Value:
    """The one number where blocks agree after all."""
    if isinstance(number, np.ndarray) and (number == number[0]).all():
        return int(number[0])
    return number


def read_tile(
    group: Group, variable: ir.Variable, cells: Array, starts: Sequence[Value], lengths: tuple[int, ...], place: Place
) -> Array:
    """A slice of a tile variable: (blocks or 1, *lengths), 0 where it runs past the tile."""
    starts = [agree(group, start) for start in starts]
    written = group.written.get(variable) if group.written else None
    if any(isinstance(start, np.ndarray) for start in starts):
        result = np.zeros((group.size, *lengths), cells.dtype)
        for lane in range(group.size):
            clips = [
                _clip(int(s[lane]) if isinstance(s, np.ndarray) else s, n, extent)
                for s, n, extent in zip(starts, lengths, cells.shape[1:])
            ]
            row = lane if cells.shape[0] == group.size else 0
            if written is not None:
                check_written(group, variable, written, place, tuple(source for source, _ in clips))
            target: tuple[Any, ...] = (lane, *(to for _, to in clips))
            result[target] = cells[row][tuple(source for source, _ in clips)]
        return result
    clips = [_clip(start, n, extent) for start, n, extent in zip(starts, lengths, cells.shape[1:])]
    sources = tuple(source for source, _ in clips)
    if written is not None:
        check_written(group, variable, written, place, sources)
    inside = cells[(slice(None), *sources)]
    if inside.shape[1:] == lengths:
        return inside
    result = np.zeros((cells.shape[0], *lengths), cells.dtype)
    result[(slice(None), *(to for _, to in clips))] = inside
    return result


def read_tile_point(group: Group, variable: ir.Variable, cells: Array, index: Sequence[Value], place: Place) -> Value:
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

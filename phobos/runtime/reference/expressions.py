"""Expressions of the typed program as Python functions of a group of blocks.

`Expressions.of(expression)` compiles once; the function is then called for each group at each turn. Where blocks must
agree and do not, it raises `Split` before anything has changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phobos.runtime.reference import numbers
from phobos.runtime.reference.built_ins import builtin
from phobos.runtime.reference.evaluation import Eval, NotExecutable, division_by_zero, dtype_of, rank_of, spreading
from phobos.runtime.reference.group import Group, Split
from phobos.runtime.reference.machine import Place
from phobos.runtime.reference.numbers import DTYPES, FLOATS, Array, Value, ZeroDivision
from phobos.runtime.reference.tiles import check_written, read_tile, read_tile_point
from phobos.semantics import ir
from phobos.value import value

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_SHORT = frozenset({"&&", "||"})


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


def is_fresh(expression: ir.Expression) -> bool:
    """Whether the value is a new array that nothing else holds."""
    if isinstance(expression, ir.Convert):
        cells, wanted = DTYPES[dtype_of(expression.operand.type)], DTYPES[dtype_of(expression.type)]
        return cells != wanted or is_fresh(expression.operand)
    if isinstance(expression, ir.BuiltinCall):
        held = expression.name in ("flat", "transpose", "iota") or expression.name in DTYPES
        return not held and rank_of(expression.type) > 0
    return isinstance(expression, (ir.BinaryOp, ir.UnaryOp)) and rank_of(expression.type) > 0


def _cannot_fault(expression: ir.Expression) -> bool:
    """Whether evaluating it for a block that does not need it is harmless."""
    match expression:
        case ir.IntLiteral() | ir.FloatLiteral() | ir.BoolLiteral() | ir.ConstantRef() | ir.DimRef() | ir.ParamRef():
            return True
        case ir.BlockIndex() | ir.GridExtent():
            return True
        case ir.VariableRef(variable=variable):
            return isinstance(variable.type, ir.ScalarT)
        case ir.UnaryOp(operand=operand) | ir.Convert(operand=operand):
            return _cannot_fault(operand)
        case ir.BinaryOp(op=op, left=left, right=right) if op not in ("/", "%"):
            return _cannot_fault(left) and _cannot_fault(right)
        case ir.ShortCircuit(left=left, right=right):
            return _cannot_fault(left) and _cannot_fault(right)
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
                return builtin(expression, self.of)
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
        return lambda group: numbers.inverse(inner(group), dtype)

    def _binary(self, expression: ir.BinaryOp) -> Eval:
        left, right = self.of(expression.left), self.of(expression.right)
        op = expression.op
        rank = rank_of(expression.type)
        dtype = dtype_of(expression.left.type)
        # A scalar beside a tile may be an array of one element a block, which must not meet the tile's last axis.
        if rank and not rank_of(expression.left.type):
            left = spreading(left, rank)
        if rank and not rank_of(expression.right.type):
            right = spreading(right, rank)
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
                raise division_by_zero(group, expression.right, error.where, op) from None

        return divide

    def _short_circuit(self, expression: ir.ShortCircuit) -> Eval:
        left, right = self.of(expression.left), self.of(expression.right)
        stops = expression.op == "||"  # the value of the left side that decides
        harmless = _cannot_fault(expression.right)
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

    def converted(self, expression: ir.Expression, target: str) -> Eval:
        inner = self.of(expression)
        source = dtype_of(expression.type)
        if source == target:
            return inner
        convert = numbers.convert
        return lambda group: convert(inner(group), source, target)


def _fits(other: Value, target: Array) -> bool:
    """Whether `target` has the shape of an operation on it and `other`."""
    if not isinstance(other, np.ndarray):
        return True
    if other.shape == target.shape:
        return True
    return other.ndim == target.ndim and all(n == 1 or n == m for n, m in zip(other.shape, target.shape))

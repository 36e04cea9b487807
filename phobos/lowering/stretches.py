"""Stores over a length that is known only when run: how their right side reads the tensor that they store to.

Threads go over such a stretch in strides, so what one reads another may have stored. The cell that an element is stored
to it may read; points are read before the stretch is gone over; cells provably elsewhere are nobody's matter. Anything
else no fixed number of registers could keep.
"""

from __future__ import annotations

from collections.abc import Mapping

from phobos.lowering import walk
from phobos.semantics import ir
from phobos.semantics.poly import Poly
from phobos.semantics.values import Values
from phobos.value import replace


def is_stretch(statement: ir.Statement) -> bool:
    """Whether a statement stores to slices one of whose lengths is known only when run."""
    return isinstance(statement, ir.Store) and any(
        isinstance(sub, ir.SliceSub) and sub.static is None for sub in statement.access.subs
    )


def read_elsewhere(statement: ir.Store, views: Mapping[ir.Variable, ir.Access], values: Values) -> ir.Expression | None:
    """What a stretch reads of its own tensor that may have been stored over by then; None: nothing."""
    base = statement.access.base
    for one in walk.every(statement.value):
        match one:
            case ir.Load(access=access, type=ir.TileT()):
                if access.base is base and not _harmless(access, statement.access, values):
                    return one
            case ir.VariableRef(variable=variable) if (view := views.get(variable)) is not None:
                if view.base is base and not _harmless(view, statement.access, values):
                    return one
            case ir.TensorRef(tensor=tensor) if tensor is base:
                return one
    for root in (*walk.subscripts(statement.access), *_subscripts_in(statement.value)):
        for one in walk.every(root):
            if isinstance(one, ir.Load) and one.access.base is base:
                return one
    return None


def points_first(statement: ir.Store, out: list[ir.Statement]) -> ir.Expression:
    """The value of a stretch, with the numbers that hang on its own tensor taken before it, by statements appended to
    `out`."""
    base = statement.access.base

    def read(one: ir.Expression) -> ir.Expression:
        match one:
            case ir.Expression(type=ir.ScalarT()):
                if not any(isinstance(part, ir.Load) and part.access.base is base for part in walk.every(one)):
                    return one
                held = ir.Variable("", "temp", one.type, one.span, one.calls)
                out.append(ir.Define(one.span, one.calls, held, one))
                return ir.VariableRef(one.span, one.calls, one.type, held)
            case ir.BuiltinCall(arguments=arguments):
                return replace(one, arguments=tuple(read(argument) for argument in arguments))
            case ir.UnaryOp(operand=operand) | ir.Convert(operand=operand):
                return replace(one, operand=read(operand))
            case ir.BinaryOp(left=left, right=right):
                return replace(one, left=read(left), right=read(right))
        return one

    return read(statement.value)


def _subscripts_in(value: ir.Expression) -> list[ir.Expression]:
    """What stands in the subscripts of slices: it is evaluated by each thread when it begins."""
    slices = [one for one in walk.every(value) if isinstance(one, ir.Load) and isinstance(one.type, ir.TileT)]
    return [sub for one in slices for sub in walk.subscripts(one.access)]


def _harmless(read: ir.Access, stored: ir.Access, values: Values) -> bool:
    """Each element reads the cell that it is stored to, or no cell is both read and stored."""
    pairs = [(_stretch(a, values), _stretch(b, values)) for a, b in zip(read.subs, stored.subs, strict=True)]
    if all(a[0].key == b[0].key and a[1].key == b[1].key for a, b in pairs):
        return True
    return any(_apart(a, b, values) or _apart(b, a, values) for a, b in pairs)


def _apart(first: tuple[Poly, Poly], second: tuple[Poly, Poly], values: Values) -> bool:
    bound = values.at_least(second[0] - first[0] - first[1])
    return bound is not None and bound >= 0


def _stretch(sub: ir.PointSub | ir.SliceSub, values: Values) -> tuple[Poly, Poly]:
    """Where a subscript starts, and how far it goes."""
    if isinstance(sub, ir.PointSub):
        return values.poly(sub.index), Poly.of(1)
    return values.poly(sub.first), Poly.of(sub.static) if sub.static is not None else values.poly(sub.length)

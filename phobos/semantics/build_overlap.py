"""Assignments whose right side reads the destination in another order (PH116).

The language evaluates the whole right side first, so the result is defined; the reader of the code, and other
compilers, may expect otherwise. Said only where cells provably meet: slices that start a constant apart, and a
transposed or flattened read of the cells that are stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.diagnostic import Related, Span
from phobos.semantics import ir
from phobos.semantics.build_context import Build
from phobos.semantics.values import statements_of

_REORDER = frozenset(("transpose", "flat"))


def overlapping_assignments(b: Build, body: ir.Block) -> None:
    for statement in statements_of(body):
        match statement:
            case ir.Store(access=access, value=value) if not access.is_point:
                for read, place, turned in _reads(b, value, access.base):
                    if read is not None and _meet(b, access, read, turned):
                        _report(b, statement, access.base, place, turned)
                        break
                    if read is None and turned:
                        _report(b, statement, access.base, place, turned)
                        break
            case ir.Assign(variable=variable, value=value) if isinstance(variable.type, ir.TileT):
                for read, place, turned in _reads(b, value, variable):
                    if read is None and turned:
                        _report(b, statement, variable, place, turned)
                        break


def _reads(
    b: Build, value: ir.Expression, base: ir.Tensor | ir.Variable
) -> Iterator[tuple[ir.Access | None, Span, str]]:
    """Reads of `base` by which elements keep or change their place: (cells, None for all; where; what turned them)."""
    stack: list[tuple[ir.Expression, str]] = [(value, "")]
    while stack:
        expression, turned = stack.pop()
        match expression:
            case ir.Load(access=access):
                if access.base is base and not access.is_point:
                    yield access, expression.span, turned
            case ir.VariableRef(variable=variable):
                view = b.views.get(variable)
                if view is not None and view.base is base:
                    yield view, expression.span, turned
                elif variable is base:
                    yield None, expression.span, turned
            case ir.UnaryOp(operand=operand) | ir.Convert(operand=operand):
                stack.append((operand, turned))
            case ir.BinaryOp(left=left, right=right):
                stack += ((left, turned), (right, turned))
            case ir.BuiltinCall(name=name, arguments=arguments):
                if name in _REORDER:
                    stack += ((argument, name) for argument in arguments)
                elif name in ("exp", "log", "sqrt", "tanh", "round", "pow", "tmax", "tmin", "where", "argsel", "tril"):
                    stack += ((argument, turned) for argument in arguments)


def _meet(b: Build, stored: ir.Access, read: ir.Access, turned: str) -> bool:
    """Whether the two provably share cells that do not stand at one place of both."""
    shifted = False
    for to, by in zip(stored.subs, read.subs, strict=True):
        if not isinstance(to, ir.SliceSub) or not isinstance(by, ir.SliceSub):
            return False
        apart = b.at_constants(b.poly(by.first) - b.poly(to.first)).constant
        if apart is None:
            return False
        if apart == 0:
            shifted = shifted or (to.static is not None and by.static is not None and to.static != by.static)
            continue
        shifted = True
        length = to.static if apart > 0 else by.static
        if length is None:
            length = b.at_constants(b.poly(to.length if apart > 0 else by.length)).constant
        if length is None or abs(apart) >= length:
            return False
    return shifted or bool(turned)


def _report(b: Build, statement: ir.Store | ir.Assign, base: ir.Tensor | ir.Variable, place: Span, turned: str) -> None:
    b.report(
        "PH116",
        f"the right side reads `{base.name}` in another order than it is stored",
        statement.access.span if isinstance(statement, ir.Store) else statement.span,
        "stored here",
        severity="warning",
        related=(
            Related(place, f"read by `{turned}` here" if turned else "these cells overlap those that are stored"),
        ),
        notes=("the right side is evaluated as a whole before anything is stored",),
        help=f"copy first, so that nobody has to know: `var t = ...`, then store `t` to `{base.name}`",
        calls=statement.calls,
    )

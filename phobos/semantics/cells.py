"""What an access touches, when, and under which conditions: what a proof about two blocks is asked of."""

from __future__ import annotations

from collections.abc import Iterator

from phobos.semantics import ir
from phobos.semantics.conditions import Condition
from phobos.semantics.flow import Reach
from phobos.semantics.poly import Poly
from phobos.semantics.values import Context, Values
from phobos.value import value


@value
class Cells:
    """What an access touches: per axis the first cell and how many, where it stands, and when it gets there.

    `bounds` are polynomials that are never negative by the loops around it, None: all there are.
    """

    axes: tuple[tuple[Poly, Poly], ...]
    extents: tuple[Poly, ...]
    context: Context
    reach: Reach
    bounds: tuple[Poly, ...] | None = None


def conditions_of(context: Context) -> Iterator[Condition]:
    """The conditions a place stands under, the nearest first."""
    for at in context.chain():
        if at.condition is not None:
            yield at.condition


def axes_of(values: Values, access: ir.Access) -> tuple[tuple[Poly, Poly], ...]:
    """Per axis the first cell and how many."""
    one = Poly.of(1)
    axes: list[tuple[Poly, Poly]] = []
    for axis, sub in enumerate(access.subs):
        if isinstance(sub, ir.PointSub):
            index = sub.index
            # A literal may be one that `cell_of` made, which the evaluator never met.
            axes.append((Poly.of(index.value) if isinstance(index, ir.IntLiteral) else values.poly(index), one))
        elif sub.whole:
            axes.append((Poly({}), values.extent(access.base, axis)))
        else:
            axes.append((values.poly(sub.first), values.poly(sub.length)))
    return tuple(axes)


def cell_of(statement: ir.Atomic) -> ir.Access:
    """The cell of an atomic as an access: the index in the leading dimension, 0 in the others."""
    zero = ir.IntLiteral(statement.span, statement.calls, ir.ScalarT("index"), 0)
    subs = [ir.PointSub(statement.index), *(ir.PointSub(zero) for _ in statement.tensor.extents[1:])]
    return ir.Access(statement.span, statement.calls, statement.tensor, tuple(subs))


__all__ = ["Cells", "axes_of", "cell_of", "conditions_of"]

"""Which loops can be double-buffered: their next tiles are fetched while a product works on these.

The emitter and PH405 read the same answer. A loop can be when a product in its body (not in a loop inside it)
has an operand that is loaded from a tensor in that same body, at a place that the loop moves.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.diagnostic import Span
from phobos.lowering import walk
from phobos.semantics import ir
from phobos.semantics.program import Program, fact
from phobos.semantics.values import Values, values_of
from phobos.value import value

Reason = tuple[Span, tuple[Span, ...], str]  # where, through which calls, what is in the way


@value
class Pipelines:
    """`loops` can be pipelined. Where there is none, `summary` says why in a line and `reasons` at their places."""

    loops: tuple[ir.For | ir.While, ...]
    summary: str
    reasons: tuple[Reason, ...]


@fact
def pipelines_of(program: Program) -> Pipelines:
    """The loops of a kernel that can be double-buffered, or why none can."""
    values = values_of(program)
    loops = [s for s in walk.statements(program.body) if isinstance(s, (ir.For, ir.While))]
    if not loops:
        return Pipelines((), "the kernel has no loop", ())
    possible: list[ir.For | ir.While] = []
    reasons: list[Reason] = []
    products = 0
    for loop in loops:
        loaded = _loads_by_variable(loop)
        for product in _products(loop.body):
            products += 1
            accesses = [access for operand in product.arguments for access in _loads(operand, loaded)]
            if not accesses:
                reasons.append((product.span, product.calls, "its operands are not loaded from tensors in the loop"))
            elif not any(_moves(values, loop, access) for access in accesses):
                reasons.append((product.span, product.calls, "the loop loads the same cells in every round"))
            elif loop not in possible:
                possible.append(loop)
    if possible:
        return Pipelines(tuple(possible), "", ())
    summary = "no operand of a product moves with its loop" if products else "no loop holds a product"
    return Pipelines((), summary, tuple(reasons))


def _own(block: ir.Block) -> Iterator[ir.Statement]:
    """The statements of a loop's body, without those of loops inside it."""
    for statement in block.statements:
        yield statement
        if not isinstance(statement, (ir.For, ir.While)):
            for inner in walk.blocks(statement):
                yield from _own(inner)


def _products(block: ir.Block) -> Iterator[ir.BuiltinCall]:
    for statement in _own(block):
        for expression in walk.expressions(statement):
            for one in walk.every(expression):
                if isinstance(one, ir.BuiltinCall) and one.name in ("dot", "dot_t"):
                    yield one


def _loads_by_variable(loop: ir.For | ir.While) -> dict[ir.Variable, tuple[ir.Access, ...]]:
    """The variables that the body fills from tensors, with the accesses they come from."""
    found: dict[ir.Variable, tuple[ir.Access, ...]] = {}
    for statement in _own(loop.body):
        match statement:
            case ir.DefineView(variable=variable, access=access) if isinstance(access.base, ir.Tensor):
                found[variable] = (access,)
            case ir.Define(variable=variable, value=source) | ir.Assign(variable=variable, value=source):
                if source is not None:
                    found[variable] = (*found.get(variable, ()), *_loads(source, found))
    return found


def _loads(expression: ir.Expression, loaded: dict[ir.Variable, tuple[ir.Access, ...]]) -> list[ir.Access]:
    out: list[ir.Access] = []
    for one in walk.every(expression):
        if isinstance(one, ir.Load) and isinstance(one.access.base, ir.Tensor):
            out.append(one.access)
        elif isinstance(one, ir.VariableRef):
            out += loaded.get(one.variable, ())
    return out


def _moves(values: Values, loop: ir.For | ir.While, access: ir.Access) -> bool:
    known = values.loops.get(loop)
    if known is None:
        return True
    for sub in access.subs:
        first = sub.index if isinstance(sub, ir.PointSub) else sub.first
        if not values.knowledge.is_invariant(values.poly(first), known.index):
            return True
    return False

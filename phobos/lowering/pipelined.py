"""Loops whose next tiles are fetched while a product works on these: which, with how many buffers, and why no more.

On the ordinary units such a loop holds one product that accumulates in registers, both of whose operands are loaded
from tensors in the loop, at a place that the loop moves, all of K a round; and beside it only views and scalars.
Fetching then runs rounds ahead, by copies that pass no register (cp.async, from sm_80 on). Loops with products on
tensor cores are the subject of `rounds.py`. In other loops the operands are fetched when they are needed. The
emitter, PH405 and hover read this one answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.diagnostic import Span
from phobos.lowering import ops, walk
from phobos.lowering.options import Options
from phobos.lowering.products import Operand, Product, whole_rounds
from phobos.lowering.rounds import Rounds, Surroundings, rounds_of
from phobos.semantics import ir
from phobos.semantics.values import Values
from phobos.value import replace, value

MOST_STAGES = 4
ORDINARY_BYTES = 96 * 1024  # that buffers of the ordinary units fill at most: more only keeps other blocks away

Loop = ir.For | ir.While


@value
class Obstacle:
    """Why the loop of a product is not pipelined. `possible`: there is something to fetch ahead all the same."""

    span: Span
    calls: tuple[Span, ...]
    why: str
    possible: bool


@value
class Pipelines:
    """The pipelined loops with their products, and `rounds` of those on tensor cores. Where there is none, `summary`
    says so in a line."""

    loops: dict[ir.Statement, ops.Dot]
    rounds: dict[ir.Statement, Rounds]
    obstacles: tuple[Obstacle, ...]
    summary: str

    @property
    def possible(self) -> bool:
        """Whether some loop is, or could be by another compiler."""
        return bool(self.loops) or any(one.possible for one in self.obstacles)


@value
class Means:
    """What there is to pipeline with: `room` bytes for buffers, `registers` of a thread; `longer`: all of K may be
    staged to that end."""

    shared: dict[ir.Variable, str]
    room: int
    registers: int
    longer: bool
    options: Options

    @property
    def arch(self) -> str:
        return self.options.arch


def pipelines_of(
    body: ir.Block,
    products: dict[ir.Statement, Product],
    means: Means,
    values: Values,
    origins: dict[ir.Statement, ir.Statement],
) -> Pipelines:
    """Decide for each loop, and give the products of pipelined loops their buffers (in `products`)."""
    loops = [s for s in walk.statements(body) if isinstance(s, (ir.For, ir.While))]
    found: dict[ir.Statement, ops.Dot] = {}
    fetching: dict[ir.Statement, Rounds] = {}
    obstacles: list[Obstacle] = []
    stored = frozenset(
        s.access.base for s in walk.statements(body) if isinstance(s, ir.Store) and isinstance(s.access.base, ir.Tensor)
    )
    views = {s.variable: s.access for s in walk.statements(body) if isinstance(s, ir.DefineView)}
    around = Surroundings(means.shared, views, means.room, means.registers, means.options, values, stored)
    for loop in loops:
        loaded = _loads_by_variable(loop)
        ahead: Rounds | str | None = None
        for dot in _own(loop.body):
            if not isinstance(dot, ops.Dot):
                continue
            accesses = [one for operand in (dot.left, dot.right) for one in _loads(operand, loaded)]
            if not accesses:
                why, possible = "its operands are not loaded from tensors in the loop", False
            elif not any(_moves(values, origins[loop], one) for one in accesses):
                why, possible = "the loop loads the same cells in every round", False
            else:
                if products[dot].unit != "fma":
                    if ahead is None:
                        ahead = _against(loop, means) or _rounds(loop, products, values, origins[loop], around)
                    if isinstance(ahead, Rounds):
                        found[loop], fetching[loop] = dot, ahead
                        continue
                    why, possible = ahead, True
                else:
                    made = _pipelined(loop, dot, products[dot], means)
                    if isinstance(made, Product):
                        found[loop], products[dot] = dot, made
                        continue
                    why, possible = made, True
            obstacles.append(Obstacle(dot.span, dot.calls, why, possible))
    summary = ""
    if not found:
        summary = "the kernel has no loop" if not loops else "no loop holds a product"
        if obstacles:
            possible = any(one.possible for one in obstacles)
            summary = "operands are fetched when they are needed" if possible else "no operand moves with its loop"
    return Pipelines(found, fetching, tuple(obstacles), summary)


def _against(loop: Loop, means: Means) -> str:
    """What keeps a loop from fetching ahead whatever it holds."""
    if means.arch == "sm_75":
        return "sm_75 has no copies that pass no register"
    if isinstance(loop, ir.While):
        return "how many rounds a `while` has left is not known ahead"
    return "the loop is unrolled" if loop.unroll is not None else ""


def _rounds(
    loop: Loop, products: dict[ir.Statement, Product], values: Values, origin: ir.Statement, around: Surroundings
) -> Rounds | str:
    assert isinstance(loop, ir.For)
    accesses = [a for s in loop.body.statements for a in _accesses(s)]
    return rounds_of(loop, products, frozenset(a for a in accesses if _moves(values, origin, a)), around)


def _accesses(statement: ir.Statement) -> Iterator[ir.Access]:
    """The places that a product, or a view, of this statement reads."""
    if isinstance(statement, ir.DefineView):
        yield statement.access
    for root in walk.expressions(statement):
        for one in walk.every(root):
            if isinstance(one, ir.Load):
                yield one.access


def _pipelined(loop: Loop, dot: ops.Dot, product: Product, means: Means) -> Product | str:
    """The product with its buffers, or what is in the way."""
    if against := _against(loop, means):
        return against
    assert isinstance(loop, ir.For)
    if not _is_alone(loop, dot):
        return "the loop does more than this product, so its operands are fetched when they are needed"
    assert isinstance(dot.result.type, ir.TileT)
    if not dot.accumulate or dot.result in means.shared or product.total != dot.result.type.dtype:
        return "it does not accumulate in registers"
    if product.length is None:
        return "how long its K is is not known before the launch"
    if not all(_fetched(operand, loop) for operand in (product.left, product.right)):
        return "an operand is not loaded from a tensor in the loop"
    if product.length != product.step:
        if not means.longer:
            return "a round is more than one step of K"
        product = whole_rounds(dot, product, means.shared, means.arch)
    stages = min(MOST_STAGES, min(means.room, ORDINARY_BYTES) // max(product.staged_bytes, 1))
    if stages < 2:
        return f"two buffers of {product.staged_bytes} bytes for its operands do not fit in {max(means.room, 0)} bytes"
    return replace(product, stages=stages)


def _is_alone(loop: ir.For, dot: ops.Dot) -> bool:
    """Whether the loop holds nothing else but views and scalars."""
    for statement in loop.body.statements:
        match statement:
            case ops.Dot():
                if statement is not dot:
                    return False
            case ir.DefineView():
                pass
            case ir.Define(variable=variable, value=value) if value is not None and isinstance(
                variable.type, ir.ScalarT
            ):
                if any(isinstance(one, ir.Load) for one in walk.every(value)):
                    return False
            case _:
                return False
    return True


def _fetched(operand: Operand, loop: ir.For) -> bool:
    """Loaded from a tensor, through a view of this round or directly."""
    inner = operand.expression
    while isinstance(inner, ir.Convert):
        inner = inner.operand
    if not operand.staged:
        return False
    if isinstance(inner, ir.Load):
        return isinstance(inner.access.base, ir.Tensor)
    views = {s.variable: s.access for s in loop.body.statements if isinstance(s, ir.DefineView)}
    return (
        isinstance(inner, ir.VariableRef)
        and inner.variable in views
        and isinstance(views[inner.variable].base, ir.Tensor)
    )


# --- whether there is something to fetch ahead ------------------------------------------------------------


def _own(block: ir.Block) -> Iterator[ir.Statement]:
    """The statements of a loop's body, without those of loops inside it."""
    for statement in block.statements:
        yield statement
        if not isinstance(statement, (ir.For, ir.While)):
            for inner in walk.blocks(statement):
                yield from _own(inner)


def _loads_by_variable(loop: Loop) -> dict[ir.Variable, tuple[ir.Access, ...]]:
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


def _moves(values: Values, loop: ir.Statement, access: ir.Access) -> bool:
    assert isinstance(loop, (ir.For, ir.While))
    known = values.loops.get(loop)
    if known is None:
        return True
    for sub in access.subs:
        first = sub.index if isinstance(sub, ir.PointSub) else sub.first
        if not values.knowledge.is_invariant(values.poly(first), known.index):
            return True
    return False

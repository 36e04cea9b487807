"""Loops in which a block waits for another: nothing that the block itself does can end them.

The condition holds loads or atomics at places that the loop does not move, and whatever else it holds the loop
does not change. A loop whose own atomic changes the cell (a ticket) is no wait.
"""

from __future__ import annotations

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.program import Program, fact
from phobos.semantics.walking import blocks_of as blocks
from phobos.semantics.walking import inside, statements_of
from phobos.value import value


@value
class Wait:
    """`how`: "load" or "atomic". `span` is the load or the atomic that is repeated."""

    loop: ir.While
    how: str
    tensor: ir.Tensor
    span: Span
    calls: tuple[Span, ...]


@fact
def waits_of(program: Program) -> tuple[Wait, ...]:
    """Every wait, in the order of the text."""
    statements = [*statements_of(program.body)] if program.body is not None else []
    written = {s.access.base for s in statements if isinstance(s, ir.Store)}
    written |= {s.tensor for s in statements if isinstance(s, ir.Atomic)}
    out: list[Wait] = []
    for loop in statements:
        wait = _wait(loop, written) if isinstance(loop, ir.While) else None
        if wait is not None:
            out.append(wait)
    return tuple(out)


def _wait(loop: ir.While, written: set[ir.Tensor | ir.Variable]) -> Wait | None:
    statements = _within(loop)
    assigned: dict[ir.Variable, list[ir.Expression | ir.Atomic]] = {}
    stored: set[object] = set()
    for statement in statements:
        match statement:
            case ir.Define(variable=variable, value=found) if found is not None:
                assigned.setdefault(variable, []).append(found)
            case ir.Assign(variable=variable, value=found):
                assigned.setdefault(variable, []).append(found)
            case ir.Atomic(result=result) if result is not None:
                assigned.setdefault(result, []).append(statement)
            case ir.For(variable=variable):
                assigned.setdefault(variable, []).append(statement.lo)
            case ir.DefineView(variable=variable, access=access):
                assigned.setdefault(variable, []).append(ir.Load(access.span, access.calls, variable.type, access))
            case ir.Store(access=access):
                stored.add(access.base)
    memory: list[ir.Load | ir.Atomic] = []
    conditions = [loop.condition, *_exits(loop)]
    pending: list[ir.Expression] = list(conditions)
    seen: set[ir.Variable] = set()
    while pending:
        for one in inside(pending.pop()):
            match one:
                case ir.Load(access=access) if isinstance(access.base, ir.Tensor):
                    memory.append(one)
                case ir.VariableRef(variable=variable) if variable in assigned and variable not in seen:
                    seen.add(variable)
                    for source in assigned[variable]:
                        if isinstance(source, ir.Atomic):
                            memory.append(source)
                        elif _counts(source, variable):
                            return None  # the loop itself comes to an end
                        else:
                            pending.append(source)
    for touch in memory:
        tensor = touch.tensor if isinstance(touch, ir.Atomic) else touch.access.base
        index = (touch.index,) if isinstance(touch, ir.Atomic) else _subscripts(touch)
        if tensor in stored or tensor not in written or not isinstance(tensor, ir.Tensor):
            return None
        if any(_moves(part, assigned) for part in index):
            return None
        if isinstance(touch, ir.Atomic) and _changes(touch):
            return None
    for touch in sorted(memory, key=lambda touch: isinstance(touch, ir.Atomic)):  # a plain load is the graver
        if isinstance(touch, ir.Atomic):
            return Wait(loop, "atomic", touch.tensor, touch.span, touch.calls)
        if isinstance(touch.access.base, ir.Tensor):
            return Wait(loop, "load", touch.access.base, touch.span, touch.calls)
    return None


def _within(loop: ir.While) -> list[ir.Statement]:
    out: list[ir.Statement] = []
    stack: list[ir.Statement] = [*loop.prelude.statements, *loop.body.statements]
    while stack:
        statement = stack.pop()
        out.append(statement)
        for block in blocks(statement):
            stack.extend(block.statements)
    return out


def _exits(loop: ir.While) -> list[ir.Expression]:
    """The conditions under which the body leaves the loop."""
    out: list[ir.Expression] = []

    def visit(block: ir.Block, under: tuple[ir.Expression, ...], own: bool) -> None:
        for statement in block.statements:
            match statement:
                case ir.Break() if own:
                    out.extend(under)
                case ir.Leave():
                    out.extend(under)
                case ir.If(condition=condition, then=then, otherwise=otherwise):
                    visit(then, (*under, condition), own)
                    visit(otherwise, (*under, condition), own)
                case ir.For(body=body) | ir.While(body=body):
                    visit(body, under, False)
                case ir.Inline(body=body):
                    visit(body, under, own)

    visit(loop.body, (), True)
    return out


def _counts(source: ir.Expression, variable: ir.Variable) -> bool:
    """Whether a variable's new value is made of its old one."""
    return any(isinstance(one, ir.VariableRef) and one.variable is variable for one in inside(source))


def _subscripts(load: ir.Load) -> tuple[ir.Expression, ...]:
    out: list[ir.Expression] = []
    for sub in load.access.subs:
        out += (sub.index,) if isinstance(sub, ir.PointSub) else (sub.first, sub.length)
    return tuple(out)


def _moves(part: ir.Expression, assigned: dict[ir.Variable, list[ir.Expression | ir.Atomic]]) -> bool:
    return any(isinstance(one, ir.VariableRef) and one.variable in assigned for one in inside(part))


def _changes(atomic: ir.Atomic) -> bool:
    """Whether the atomic by itself moves its cell on: an `atomic_add` of anything but a literal 0."""
    if atomic.kind != "add":
        return False
    added = atomic.operands[0]
    while isinstance(added, ir.Convert):
        added = added.operand
    return not (isinstance(added, ir.IntLiteral) and added.value == 0)

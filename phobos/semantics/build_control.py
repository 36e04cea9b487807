"""Loops, branches and `return`: bounds, conditions, what a branch or loop may change, which code is never reached."""

from __future__ import annotations

from collections.abc import Sequence

from phobos.diagnostic import Related, Span
from phobos.language.scalars import INTEGERS, REAL_INTEGERS
from phobos.semantics import ir
from phobos.semantics.build_context import Build, Frame
from phobos.semantics.build_define import know
from phobos.semantics.build_numbers import truth, unknown
from phobos.semantics.build_operators import (
    convert,
    is_literal,
    may_be_zero,
    need_bool,
    need_index,
)
from phobos.semantics.build_stores import fill, scalar_stored
from phobos.semantics.names import Scope
from phobos.semantics.types import ERROR, INDEX, is_index, type_text
from phobos.syntax import tree


def block(b: Build, node: tree.Block) -> bool:
    """The statements of a block in a scope of its own. Whether control can come out at its end."""
    outer, b.scope = b.scope, Scope(b.scope)
    try:
        return statements(b, node)
    finally:
        b.scope = outer


def statements(b: Build, node: tree.Block) -> bool:
    goes_on = True
    for position, inner in enumerate(node.statements):
        if not goes_on:
            _unreachable(b, b.place(inner.start, node.statements[-1].end), node.statements[position - 1])
            b.dead += 1
            for rest in node.statements[position:]:
                b.statement(rest)
            b.dead -= 1
            return False
        goes_on = b.statement(inner)
    return goes_on


def _unreachable(b: Build, span: Span, because: tree.Stmt) -> None:
    if b.calls or b.dead:
        return
    what = {
        tree.Return: "`return` leaves before this",
        tree.Break: "`break` leaves before this",
        tree.Continue: "`continue` goes on before this",
    }.get(type(because), "nothing comes out of the statement before this")
    b.report(
        "PH113",
        "this code is never reached",
        span,
        what,
        severity="warning",
        tags=("unnecessary",),
        help="remove it, or move it up",
    )


def _assigned(b: Build, nodes: Sequence[tree.Stmt]) -> frozenset[str]:
    """Names that any of these statements assigns, at any depth."""
    found: set[str] = set()
    stack: list[tree.Stmt] = list(nodes)
    while stack:
        node = stack.pop()
        match node:
            case tree.Assign(target=tree.Name(text=text)):
                found.add(text)
            case tree.For(body=body) | tree.While(body=body):
                inner = b.assigned.get(body)
                if inner is None:
                    inner = b.assigned[body] = _assigned(b, body.statements)
                found |= inner
            case tree.If(then=then, otherwise=otherwise):
                stack += then.statements
                if otherwise is not None:
                    stack.append(otherwise)
            case tree.Block(statements=inner_statements):
                stack += inner_statements
    return frozenset(found)


def _changed(b: Build, nodes: Sequence[tree.Stmt]) -> list[ir.Variable]:
    """The scalar variables in scope that these statements assign."""
    found = []
    for name in sorted(_assigned(b, nodes)):
        meaning = b.scope.find(name)[1]
        if isinstance(meaning, ir.Variable) and meaning.kind == "var" and isinstance(meaning.type, ir.ScalarT):
            found.append(meaning)
    return found


def _forget(b: Build, variables: Sequence[ir.Variable]) -> None:
    for variable in variables:
        b.known[variable] = unknown(b, variable)


def for_(b: Build, node: tree.For) -> bool:
    bounds = [node.lo, node.hi] + ([node.step] if node.step is not None else [])
    values = [
        value if need_index(b, value, f"the {what} of `range`") else ir.Error(value.span, value.calls, ERROR)
        for value, what in zip(b.in_order(bounds), ("start", "end", "step"))
    ]
    step: ir.Expression = (
        values[2] if len(values) == 3 else ir.IntLiteral(b.place(node.hi.end, node.hi.end), b.calls, INDEX, 1)
    )
    if node.step is not None and is_index(step.type):
        number = b.poly(step).constant
        if number is not None and number <= 0:
            b.report(
                "PH117",
                f"the step of `range` is {number}",
                node.step,
                "a step must be positive",
                help="a loop counts up; count down inside it: `let i = n - 1 - j`",
            )
        else:
            may_be_zero(b, step, "a step")
    unroll = None if node.unroll is None else node.unroll.value
    if unroll is not None and unroll < 1:
        assert node.unroll is not None
        b.report(
            "PH117",
            "a loop is unrolled at least once",
            node.unroll,
            f"this is {unroll}",
            help="write a positive number, or leave `<unroll ..>` out",
        )
        unroll = None
    if is_index(values[0].type) and is_index(values[1].type):
        rounds = (b.poly(values[1]) - b.poly(values[0])).constant
        if rounds is not None and rounds <= 0 and not b.calls and not b.dead:
            b.report(
                "PH113",
                "this loop never runs",
                b.span(node.body),
                f"`range` is empty: {rounds} long",
                severity="warning",
                tags=("unnecessary",),
            )
    changed = _changed(b, node.body.statements)
    _forget(b, changed)
    variable = b.variable(node.variable.text, "loop", INDEX, b.span(node.variable))
    b.nodes.setdefault(node.variable, variable)
    outer, b.scope = b.scope, Scope(b.scope)
    if node.variable.text:
        b.scope.names[node.variable.text] = variable
    b.loops += 1
    breaks, b.breaks = b.breaks, False
    body = b.collect(lambda: _body(b, node.body))
    b.breaks = breaks
    b.loops -= 1
    b.scope = outer
    _forget(b, changed)
    keyword = b.place(node.start, node.start + 3)
    b.out.append(ir.For(b.span(node), b.calls, keyword, variable, values[0], values[1], step, unroll, body))
    return True


def _body(b: Build, node: tree.Block) -> None:
    block(b, node)


def while_(b: Build, node: tree.While) -> bool:
    changed = _changed(b, node.body.statements)
    _forget(b, changed)
    held: list[ir.Expression] = []
    prelude = b.collect(lambda: held.append(b.value(node.condition)))
    (condition,) = held
    condition = need_bool(b, condition, "while")
    always = truth(b, condition, constants=False)
    if always is False and not b.calls and not b.dead:
        b.report(
            "PH113",
            "this loop never runs",
            b.span(node.body),
            "the condition is always false",
            severity="warning",
            tags=("unnecessary",),
        )
    b.loops += 1
    breaks, b.breaks = b.breaks, False
    body = b.collect(lambda: _body(b, node.body))
    leaves = b.breaks
    b.breaks = breaks
    b.loops -= 1
    _forget(b, changed)
    keyword = b.place(node.start, node.start + 5)
    b.out.append(ir.While(b.span(node), b.calls, keyword, prelude, condition, body))
    return always is not True or leaves


def if_(b: Build, node: tree.If) -> bool:
    condition = need_bool(b, b.value(node.condition), "if")
    always = truth(b, condition, constants=False)
    if always is not None and not b.calls and not b.dead:
        dead = node.then if not always else node.otherwise
        if dead is not None:
            b.report(
                "PH113",
                "this code is never reached",
                b.span(dead),
                f"the condition is always {'true' if always else 'false'}",
                severity="warning",
                tags=("unnecessary",),
                related=(Related(condition.span, "the condition"),),
            )
    arms: list[tree.Stmt] = [*node.then.statements]
    if node.otherwise is not None:
        arms.append(node.otherwise)
    changed = _changed(b, arms)
    before = {variable: b.known[variable] for variable in changed if variable in b.known}
    goes_on = [True, True]

    def then() -> None:
        goes_on[0] = block(b, node.then)

    def otherwise() -> None:
        if isinstance(node.otherwise, tree.If):
            goes_on[1] = b.statement(node.otherwise)
        elif node.otherwise is not None:
            goes_on[1] = block(b, node.otherwise)

    then_block = b.collect(then)
    for variable in changed:
        if variable in before:
            b.known[variable] = before[variable]
        else:
            b.known.pop(variable, None)
    else_block = b.collect(otherwise)
    _forget(b, changed)
    keyword = b.place(node.start, node.start + 2)
    b.out.append(ir.If(b.span(node), b.calls, keyword, condition, then_block, else_block))
    if always is True:
        return goes_on[0]
    if always is False:
        return goes_on[1]
    return goes_on[0] or goes_on[1]


def leave_loop(b: Build, node: tree.Break | tree.Continue) -> None:
    word = "break" if isinstance(node, tree.Break) else "continue"
    if not b.loops and b.lost is None:
        return
    if not b.loops:
        b.report(
            "PH001",
            f"`{word}` stands outside a loop",
            node,
            "no loop around it in this item",
            help="`return` leaves the kernel or function",
        )
        return
    if word == "break":
        b.breaks = True
        b.out.append(ir.Break(b.span(node), b.calls))
    else:
        b.out.append(ir.Continue(b.span(node), b.calls))


def return_(b: Build, node: tree.Return) -> None:
    frame = b.frames[-1]
    value = None if node.value is None else b.value(node.value)
    if isinstance(frame.function, tree.Kernel):
        if value is not None:
            assert node.value is not None
            b.report(
                "PH104",
                "a kernel returns no value",
                node.value,
                "nothing can take it",
                help="store the result into a tensor; `return` alone ends the block",
            )
        b.out.append(ir.Leave(b.span(node), b.calls, True))
        return
    name = frame.function.name
    here = (Related(Span(b.owner, name.start, name.end), f"in the function `{name.text}`"),)
    if frame.result_type is None:
        if value is not None:
            assert node.value is not None
            b.report(
                "PH104",
                f"`{name.text}` returns no value",
                node.value,
                "no `-> type` in its signature",
                related=here,
                help="declare the result: `fn ..(..) -> f32`",
            )
    elif value is None:
        b.report("PH104", f"`{name.text}` must return a value here", node, "returns nothing", related=here)
    elif frame.result is not None:
        assert node.value is not None
        fitted = _returned(b, frame.result_type, frame.wraps_to, value, node.value, name.text)
        if fitted is not None:
            fitted = _of_one_kind(b, frame, fitted, node.value)
        if fitted is not None:
            result = frame.result
            if b.alone and len(b.frames) == 1:  # nobody takes it
                b.out.append(ir.Evaluate(b.span(node), b.calls, fitted))
            elif frame.single:
                know(b, result, fitted)
                b.out.append(ir.Define(b.span(node), b.calls, result, fitted))
            else:
                b.out.append(ir.Assign(b.span(node), b.calls, result, None, fitted))
    # The last statement of a function needs no `Leave`: control comes out there by itself.
    if not (frame.single and len(b.frames) > 1 and b.frames[-1].function.body.statements[-1] is node):
        b.out.append(ir.Leave(b.span(node), b.calls, b.alone and len(b.frames) == 1))


def _of_one_kind(b: Build, frame: Frame, value: ir.Expression, where: tree.Expr) -> ir.Expression | None:
    """A result keeps the kind of its value: the first `return` says whether it is an index or a real integer."""
    assert frame.result is not None
    result, type_ = frame.result, value.type
    if not isinstance(result.type, ir.ScalarT) or not isinstance(type_, ir.ScalarT) or type_.dtype not in INTEGERS:
        return value
    if not frame.kind_known:
        frame.kind_known = True
        if type_.dtype != result.type.dtype:
            frame.result = b.variable("", result.kind, type_, result.span)
        return value
    if type_.dtype == result.type.dtype:
        return value
    if type_.dtype == "index" and is_literal(value):
        return convert(value, result.type.dtype)
    b.report(
        "PH104",
        f"this returns a value of type {type_text(type_)}, and another `return` one of type {type_text(result.type)}",
        where,
        type_text(type_),
        help="convert one of them: `i64(..)` gives an index",
    )
    return None


def _returned(
    b: Build, type_: ir.Type, wraps: str | None, value: ir.Expression, where: tree.Node, name: str
) -> ir.Expression | None:
    if isinstance(type_, ir.ErrorT) or isinstance(value.type, ir.ErrorT):
        return value
    what = f"`{name}` returns"
    if isinstance(type_, ir.TileT):
        if not isinstance(value.type, ir.TileT):
            b.report("PH104", f"`{name}` returns {type_text(type_)}", where, f"this is {type_text(value.type)}")
            return None
        return fill(b, type_, value, where, what)
    if isinstance(value.type, ir.TileT):
        b.report("PH104", f"`{name}` returns {type_text(type_)}", where, f"this is {type_text(value.type)}")
        return None
    if wraps is not None and value.type.dtype in REAL_INTEGERS:
        return convert(value, wraps)
    return scalar_stored(b, type_, wraps, value, where, what)


def missing_return(b: Build, function: tree.Function) -> None:
    """Every path of a function with a result must return a value (PH104)."""
    end = function.body.end
    b.report(
        "PH104",
        f"`{function.name.text}` can end without a value",
        b.place(max(function.body.start, end - 1), end),
        "control comes out here",
        related=(Related(b.span(function.name), "declared with a result"),),
        help="return a value on every path",
    )

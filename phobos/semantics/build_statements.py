"""Statements: definitions, stores and control flow, with what may be assigned and what a branch or loop may change."""

from __future__ import annotations

from phobos.language.builtins import CORE
from phobos.semantics import ir
from phobos.semantics.build_assign import assign
from phobos.semantics.build_calls import call
from phobos.semantics.build_context import Build
from phobos.semantics.build_control import block, for_, if_, leave_loop, return_, while_
from phobos.semantics.build_define import define
from phobos.semantics.build_effects import atomic, barrier
from phobos.semantics.build_subscripts import bare
from phobos.syntax import tree


def statement(b: Build, node: tree.Stmt) -> bool:
    """One statement. Whether control goes on to the next."""
    if b.assumes:
        for assumed in b.assumes.get(node, ()):
            _assume(b, assumed)
    mark = len(b.out)
    goes_on = True
    match node:
        case tree.Assign():
            assign(b, node)
        case tree.Let() | tree.Var():
            define(b, node)
        case tree.ExprStmt():
            _expression(b, node)
        case tree.For():
            goes_on = for_(b, node)
        case tree.If():
            goes_on = if_(b, node)
        case tree.While():
            goes_on = while_(b, node)
        case tree.Return():
            return_(b, node)
            goes_on = False
        case tree.Break() | tree.Continue():
            leave_loop(b, node)
            goes_on = not b.loops
        case tree.Block():
            goes_on = block(b, node)
        case tree.Broken():
            _broken(b, node)
    if len(b.out) > mark:
        b.nodes.setdefault(node, b.out[-1])
    return goes_on


def _assume(b: Build, node: tree.Expr) -> None:
    value = b.value(node)
    if not isinstance(value, ir.Error):
        b.out.append(ir.AssumeUniform(b.span(node), b.calls, value))


def _broken(b: Build, node: tree.Broken) -> None:
    """What could still be read of a statement that did not parse: its names count as used, nothing is said of it."""
    problems, told = list(b.problems), set(b.told)
    for part in node.parts:
        b.value(part)
    b.problems[:], b.told = problems, told
    b.out.append(ir.Evaluate(b.span(node), b.calls, b.error(node)))


# --- expression statements ----------------------------------------------------------------------------


def _expression(b: Build, node: tree.ExprStmt) -> None:
    inner = bare(node.value)
    if isinstance(inner, tree.Call):
        entry = CORE.get(inner.callee.text)
        if entry is not None and entry.effect and len(inner.arguments) == len(entry.parameters):
            if entry.effect == "barrier":
                barrier(b, inner)
            else:
                atomic(b, inner, entry, used=False)
            return
        if entry is None:
            result = call(b, inner, used=False)
            if result is not None:
                b.nodes.setdefault(inner, result)
            return
    value = b.value(node.value)
    b.out.append(ir.Evaluate(b.span(node), b.calls, value))
    if isinstance(value.type, ir.ErrorT) or isinstance(inner, tree.Missing) or b.calls:
        return
    after_newline = isinstance(inner, tree.Unary | tree.Paren) or isinstance(node.value, tree.Paren)
    b.report(
        "PH004",
        "this expression has no effect",
        node,
        "its value is thrown away",
        severity="warning",
        notes=("a newline ended the statement before it, so this line is a statement of its own",)
        if after_newline
        else (),
        help="to go on with the line above, end that line with the operator"
        if after_newline
        else "store the value, or remove the line",
    )

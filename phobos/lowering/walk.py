"""Ways through the typed program: the parts of an expression, the blocks of a statement."""

from __future__ import annotations

from collections.abc import Iterator

from phobos.lowering import ops
from phobos.semantics import ir


def operands(expression: ir.Expression) -> tuple[ir.Expression, ...]:
    """The expressions directly inside one, subscripts included."""
    match expression:
        case ir.Load(access=access):
            return subscripts(access)
        case ir.UnaryOp(operand=operand) | ir.Convert(operand=operand):
            return (operand,)
        case ir.BinaryOp(left=left, right=right) | ir.ShortCircuit(left=left, right=right):
            return (left, right)
        case ir.BuiltinCall(arguments=arguments) | ir.Unsupported(arguments=arguments):
            return arguments
        case _:
            return ()


def subscripts(access: ir.Access) -> tuple[ir.Expression, ...]:
    found: list[ir.Expression] = []
    for sub in access.subs:
        if isinstance(sub, ir.PointSub):
            found.append(sub.index)
        else:
            found += (sub.first, sub.length)
    return tuple(found)


def every(expression: ir.Expression) -> Iterator[ir.Expression]:
    """The expression and everything inside it."""
    stack = [expression]
    while stack:
        one = stack.pop()
        yield one
        stack += operands(one)


def expressions(statement: ir.Statement) -> tuple[ir.Expression, ...]:
    """The expressions a statement evaluates itself (not those of its blocks)."""
    match statement:
        case ir.Define(value=value):
            return () if value is None else (value,)
        case ir.DefineView(access=access):
            return subscripts(access)
        case ir.Assign(value=value) | ir.Evaluate(value=value) | ir.AssumeUniform(value=value):
            return (value,)
        case ir.Store(access=access, value=value):
            return (*subscripts(access), value)
        case ir.For(lo=lo, hi=hi, step=step):
            return (lo, hi, step)
        case ir.While(condition=condition) | ir.If(condition=condition):
            return (condition,)
        case ir.Atomic(index=index, operands=operands_):
            return (index, *operands_)
        case ir.UnsupportedCall(arguments=arguments):
            return arguments
        case ops.Reduce(source=source):
            return (source,)
        case ops.Dot(left=left, right=right):
            return (left, right)
        case _:
            return ()


def blocks(statement: ir.Statement) -> tuple[ir.Block, ...]:
    match statement:
        case ir.For(body=body) | ir.Inline(body=body):
            return (body,)
        case ir.While(prelude=prelude, body=body):
            return (prelude, body)
        case ir.If(then=then, otherwise=otherwise):
            return (then, otherwise)
        case _:
            return ()


def statements(block: ir.Block) -> Iterator[ir.Statement]:
    """Every statement of a block at any depth, in the order of the text."""
    for statement in block.statements:
        yield statement
        for inner in blocks(statement):
            yield from statements(inner)


def is_tile(type_: ir.Type) -> bool:
    return isinstance(type_, ir.TileT)

"""Ways through the typed program: the parts of an expression, the blocks of a statement."""

from __future__ import annotations

from collections.abc import Iterator

from phobos.lowering import ops
from phobos.semantics import ir
from phobos.semantics.walking import blocks_of as blocks
from phobos.semantics.walking import evaluated_by, operands, subscripts


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
        case ops.Reduce(source=source):
            return (source,)
        case ops.Dot(left=left, right=right):
            return (left, right)
    return evaluated_by(statement)


def statements(block: ir.Block) -> Iterator[ir.Statement]:
    """Every statement of a block at any depth, in the order of the text."""
    for statement in block.statements:
        yield statement
        for inner in blocks(statement):
            yield from statements(inner)


def is_tile(type_: ir.Type) -> bool:
    return isinstance(type_, ir.TileT)


__all__ = ["blocks", "every", "expressions", "is_tile", "operands", "statements", "subscripts"]

"""Ways through the typed program: the parts of an expression, the blocks of a statement."""

from __future__ import annotations

from phobos.lowering import ops
from phobos.semantics import ir
from phobos.semantics.walking import blocks_of as blocks
from phobos.semantics.walking import evaluated_by, operands, subscripts
from phobos.semantics.walking import inside as every
from phobos.semantics.walking import statements_of as statements


def expressions(statement: ir.Statement) -> tuple[ir.Expression, ...]:
    """The expressions a statement evaluates itself (not those of its blocks)."""
    match statement:
        case ops.Reduce(source=source):
            return (source,)
        case ops.Dot(left=left, right=right):
            return (left, right)
    return evaluated_by(statement)


def is_tile(type_: ir.Type) -> bool:
    return isinstance(type_, ir.TileT)


__all__ = ["blocks", "every", "expressions", "is_tile", "operands", "statements", "subscripts"]

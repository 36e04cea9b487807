"""Loops whose next tiles are fetched while a product works on these: which, and with how many buffers.

Such a loop holds one product that accumulates in registers, both of whose operands are loaded from tensors in the
loop, a whole step of K a round; and beside it only views and scalars. Fetching then runs rounds ahead, by copies
that pass no register (cp.async, from sm_80 on). More loops could be (`pipelines` says which, for the rules); in those
the operands are fetched when they are needed.
"""

from __future__ import annotations

from dataclasses import replace

from phobos.lowering import ops, walk
from phobos.lowering.products import Operand, Product
from phobos.semantics import ir

STATIC_BYTES, DYNAMIC_BYTES = 48 * 1024, 96 * 1024  # of shared memory that buffers may fill up to
MOST_STAGES = 4


def pipelined_loops(
    body: ir.Block,
    products: dict[ir.Statement, Product],
    shared: dict[ir.Variable, str],
    others_bytes: int,
    dynamic: bool,
    arch: str,
) -> dict[ir.Statement, ops.Dot]:
    """The loops with their products. `others_bytes` of shared memory are taken by tiles."""
    if arch == "sm_75":
        return {}
    room = (DYNAMIC_BYTES if dynamic else STATIC_BYTES) - others_bytes
    found: dict[ir.Statement, ops.Dot] = {}
    for loop in walk.statements(body):
        if isinstance(loop, ir.For) and loop.unroll is None:
            dot = _only_product(loop)
            if dot is not None and dot.accumulate and dot.result not in shared:
                product = products[dot]
                stages = min(MOST_STAGES, room // max(product.staged_bytes, 1))
                if stages >= 2 and _fits(dot, product, loop):
                    found[loop] = dot
                    products[dot] = replace(product, stages=stages)
    return found


def _only_product(loop: ir.For) -> ops.Dot | None:
    """The product of a loop that holds nothing else but views and scalars."""
    found: ops.Dot | None = None
    for statement in loop.body.statements:
        match statement:
            case ops.Dot():
                if found is not None:
                    return None
                found = statement
            case ir.DefineView():
                pass
            case ir.Define(variable=variable, value=value) if value is not None and isinstance(
                variable.type, ir.ScalarT
            ):
                if any(isinstance(one, ir.Load) for one in walk.every(value)):
                    return None
            case _:
                return None
    return found


def _fits(dot: ops.Dot, product: Product, loop: ir.For) -> bool:
    assert isinstance(dot.result.type, ir.TileT)
    return (
        product.length == product.step
        and product.total == dot.result.type.dtype
        and all(_fetched(operand, loop) for operand in (product.left, product.right))
    )


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

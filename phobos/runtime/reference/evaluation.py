"""What a compiled expression is, and what all that compile or evaluate one share.

An expression becomes a function of a group of blocks; what that returns is a `Value` of its type (see `numbers`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phobos.runtime.reference.faults import Fault, Site
from phobos.runtime.reference.group import Group
from phobos.runtime.reference.numbers import Array, Value
from phobos.semantics import ir

Eval = Callable[[Group], Value]


class NotExecutable(Exception):
    """A part of the program that is checked but not executed; `what` as the user wrote it."""

    def __init__(self, what: str, node: ir.Expression | ir.Statement) -> None:
        super().__init__(what)
        self.what = what
        self.node = node


def rank_of(type_: ir.Type) -> int:
    """How many axes a value of the type has; 0 for a scalar."""
    return len(type_.shape) if isinstance(type_, ir.TileT) else 0


def dtype_of(type_: ir.Type) -> str:
    """The element type by its name in the language."""
    if isinstance(type_, ir.ErrorT):
        raise AssertionError("an expression in error reached the runtime")
    return type_.dtype


def spread(held: Value, rank: int) -> Value:
    """A scalar of several blocks, (blocks,), ready to stand beside tiles of `rank`: (blocks, 1, ...)."""
    if rank and isinstance(held, np.ndarray) and held.ndim == 1:
        return held.reshape((-1,) + (1,) * rank)
    return held


def spreading(inner: Eval, rank: int) -> Eval:
    """`inner`, whose scalars of several blocks are ready to stand beside tiles of `rank`."""
    if not rank:
        return inner
    return lambda group: spread(inner(group), rank)


def division_by_zero(group: Group, divisor: ir.Expression, where: Array | None, op: str) -> Fault:
    """`where`: the cells of the quotient whose divisor is 0, a row a block or one for all; None for a scalar."""
    lane, inside = 0, ""
    if where is not None:
        spot = [int(i) for i in np.argwhere(where)[0]]
        lane = spot[0] if where.shape[0] == group.size else 0
        inside = f" at cell [{', '.join(map(str, spot[1:]))}] of the tile" if len(spot) > 1 else ""
    block = int(group.ids[lane])
    what = "divides by 0" if op == "/" else "takes a remainder by 0"
    return Fault(
        "division-by-zero",
        f"block {block} {what}{inside}",
        Site(divisor.span, divisor.calls, "this is 0"),
        blocks=(block,),
        help="integers have no infinity: test the divisor first; a cell past the end of a tensor reads as 0",
    )

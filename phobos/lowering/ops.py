"""The statements that lowering adds to the program's own: what a CTA does together, and where it must wait.

A lowered body is an `ir.Block` in which every tile expression is elementwise over *leaves*: loads, variables,
scalars, and the tile built-ins that only choose an element (`transpose`, `flat`, `gather`, `iota`, `tril` of
leaves). What needs the elements of other threads stands in a statement of its own, which fills a variable.
"""

from __future__ import annotations

from phobos.semantics import ir
from phobos.value import value


@value
class Reduce(ir.Statement):
    """`result` [R, 1] = over each row of `source` [R, C]; `kind` is rowmax, rowsum or rowargmax."""

    kind: str
    result: ir.Variable
    source: ir.Expression


@value
class RunningSum(ir.Statement):
    """Each column of `tile` becomes its running sum, in place."""

    tile: ir.Variable


@value
class Dot(ir.Statement):
    """`result` [M, N] = or += `left` [M, K] times `right` ([K, N], or [N, K] where `transposed`).

    An operand is a `Load`, or a `VariableRef` of a view or of a tile that every thread can read.
    """

    result: ir.Variable
    accumulate: bool
    left: ir.Expression
    right: ir.Expression
    transposed: bool


@value
class Sync(ir.Statement):
    """All threads of the CTA wait for each other; `reason` says for what."""

    reason: str


Elementwise = (ir.Define, ir.Assign, ir.Store)
"""The statements that are one loop over a thread's own elements (where they concern a tile)."""


def matrix_shape(shape: tuple[int | object, ...]) -> tuple[int, int]:
    """A static tile shape as rows and columns: the last axis, and all before it together."""
    rows = 1
    for length in shape[:-1]:
        assert isinstance(length, int)
        rows *= length
    last = shape[-1]
    assert isinstance(last, int)
    return rows, last


def is_static(type_: ir.Type) -> bool:
    return isinstance(type_, ir.TileT) and all(isinstance(length, int) for length in type_.shape)


def cells(type_: ir.Type) -> int:
    """Elements of a static tile."""
    assert isinstance(type_, ir.TileT)
    rows, columns = matrix_shape(type_.shape)
    return rows * columns

"""The grid of a kernel: what its text says of it, what it cannot say, and what it may not exceed.

The plan, the reference runtime, hover and the rules all ask here.
"""

from __future__ import annotations

from collections.abc import Mapping

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program, fact
from phobos.value import value


@value
class GridUse:
    """One use of a block index that says how many blocks an axis has: `ceil(extent / divisor)`."""

    extent: Poly
    divisor: Poly
    span: Span
    calls: tuple[Span, ...]


@value
class Axis:
    """One axis of an ordinary grid.

    `read`: the kernel reads this index. `uses`: what says its size (they must agree as numbers at launch);
    empty with `read` means the caller must say, and `reason` says why (PH409).
    """

    read: bool
    uses: tuple[GridUse, ...]
    reason: str


@value
class GridConstant:
    """An `@autotune` constant that equals the launched grid (language.md 9).

    `stride_form`: `range(b * T, N, C * T)`: the launcher binds it to the resident count. Otherwise
    (`b + r * C`) its own value is the grid.
    """

    constant: ir.Constant
    stride_form: bool
    span: Span


@value
class CellCap:
    """A stored place, or loaded point, on one dimension given by the bare block index: grid <= extent."""

    extent: Poly
    tensor: ir.Tensor
    axis_of_tensor: int
    axis: int
    span: Span
    calls: tuple[Span, ...]


@value
class Grid:
    """`axes` has three entries. `persistent`: one-dimensional, sized by residency.

    `rounds` are the block-strided loops `ceil(hi / F)` whose maximum is the useful work of a persistent grid;
    `useful_known` is False where a use of the block index neither starts such a loop nor is a slot.
    """

    persistent: bool
    axes: tuple[Axis, Axis, Axis]
    constants: tuple[GridConstant, ...]
    rounds: tuple[GridUse, ...]
    useful_known: bool
    caps: tuple[CellCap, ...]


class GridUnknown(Exception):
    """The text does not say the grid; the message says why, in the user's terms (PH409)."""


class GridDisagrees(Exception):
    """Two uses give different counts at these sizes."""


@fact
def grid_of(program: Program) -> Grid:
    raise NotImplementedError


def blocks_at(program: Program, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    """The inferred grid of an ordinary kernel at these extents and parameters. Raises GridUnknown, GridDisagrees."""
    raise NotImplementedError


def useful_work_at(program: Program, sizes: Mapping[str, int]) -> int | None:
    """The most blocks of a persistent grid that have work, or None where it is not known."""
    raise NotImplementedError


def cap_at(program: Program, sizes: Mapping[str, int]) -> tuple[int, CellCap] | None:
    """The smallest number of cells that the blocks of axis x own one each of, or None."""
    raise NotImplementedError


def evaluate(poly: Poly, sizes: Mapping[str, int]) -> int | None:
    """The number a polynomial of extents, parameters and constants is at these sizes; None where an atom is missing."""
    raise NotImplementedError

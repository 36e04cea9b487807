"""Which cells of which tensor a block reads and writes in a phase, and which pairs can meet.

A footprint is an affine set: per axis `first + [0, length)`, first a polynomial of block index, loop variables
and extents. Two footprints of two different blocks in one phase are disjoint (proved), meet (with a witness) or
are unknown (a reason): only the first is silence.
"""

from __future__ import annotations

from typing import Literal

from phobos.semantics import ir
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program, fact
from phobos.value import value


@value
class Footprint:
    """One access: kind, and per axis (first, length) as polynomials, None where not affine."""

    statement: ir.Statement
    access: ir.Access
    kind: Literal["load", "store", "atomic"]
    axes: tuple[tuple[Poly, Poly] | None, ...]


@value
class Witness:
    """Two block ids, a grid, sizes, and the cell at which they meet."""

    blocks: tuple[int, int]
    grid: int
    sizes: tuple[tuple[str, int], ...]
    cell: tuple[int, ...]


@value
class Conflict:
    """Two accesses of two blocks in one phase that may touch one cell, one of them a plain store.

    `kind`: "race" (PH501), "same-cell" (PH502), "loop" (PH503), "atomic" (PH507), "unknown" (PH506), "alias" (PH505).
    `certain`: a witness exists, or it needs only index arithmetic.
    """

    kind: str
    first: Footprint
    second: Footprint
    certain: bool
    witness: Witness | None
    reason: str


@fact
def footprints_of(program: Program) -> tuple[Footprint, ...]:
    raise NotImplementedError


@fact
def conflicts_of(program: Program) -> tuple[Conflict, ...]:
    raise NotImplementedError

"""Which cells all blocks together touch through some accesses, at numbers: does that hang on the size of the grid?

Small grids and sizes near the borders of tiles are run through, round by round, with every condition around the
accesses. A condition that no arithmetic decides, or a round that has no number, gives no answer at that size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from phobos.semantics import ir
from phobos.semantics.concrete import number, plain_atoms, truth
from phobos.semantics.conditions import polys
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.values import LoopFact, Values
from phobos.semantics.variation import settings_for
from phobos.value import value

GRIDS = (1, 2, 3, 5)
MOST_SETTINGS = 48
MOST_STEPS = 8_000  # rounds of all blocks that are looked at
BLOCK: Atom = ("block", 0)
GRID: Atom = ("blocks", 0)

Cells = dict[tuple[str, int], dict[int, int]]
"""By tensor and axis: the cells, and the block that touches each (-1: more than one)."""


@value
class Covered:
    """One axis of an access: `length` cells from `first`."""

    access: ir.Access
    axis: int
    first: Poly
    length: Poly


def hangs_on_the_grid(values: Values, spans: Sequence[Covered]) -> bool:
    """Whether sizes were found at which two blocks do one cell, or two grids do different cells."""
    budget = [MOST_STEPS]
    concerned = [poly for span in spans for poly in _concerned(values, span)]
    atoms = {atom for poly in concerned for atom in plain_atoms(poly)}
    own = {loop.variable for span in spans for loop in _loops(values, span)}
    settings = (at for at in settings_for(values, atoms - own, concerned) if at[GRID] == 2)
    for at in islice(settings, MOST_SETTINGS):
        known: Cells | None = None
        for grid in GRIDS:
            cells = _cells(values, spans, {**at, GRID: grid}, grid, budget)
            if cells is None:
                break
            if any(-1 in owners.values() for owners in cells.values()):
                return True
            if known is not None and any(known[k].keys() != cells[k].keys() for k in known):
                return True
            known = cells
        if budget[0] <= 0:
            return False
    return False


def _loops(values: Values, span: Covered) -> list[LoopFact]:
    """The loops around an access, outermost first."""
    return [at.loop for at in values.context(span.access).chain() if at.loop is not None][::-1]


def _concerned(values: Values, span: Covered) -> Iterator[Poly]:
    yield from (span.first, span.length, values.extent(span.access.base, span.axis))
    for at in values.context(span.access).chain():
        if at.condition is not None:
            yield from polys(at.condition)
        if at.loop is not None:
            yield from (bound for bound in (at.loop.value, at.loop.hi) if bound is not None)


def _cells(values: Values, spans: Sequence[Covered], at: dict[Atom, int], grid: int, budget: list[int]) -> Cells | None:
    """The cells that a grid touches; None where that is not known."""
    found: Cells = {(span.access.base.name, span.axis): {} for span in spans}
    for block in range(grid):
        here = {**at, BLOCK: block}
        for span in spans:
            owners = found[span.access.base.name, span.axis]
            for low, high in _stretches(values, span, _loops(values, span), here, budget):
                if low is None:
                    return None
                for cell in range(low, high):
                    owners[cell] = block if owners.get(cell, block) == block else -1
    return found


def _stretches(
    values: Values, span: Covered, loops: Sequence[LoopFact], at: dict[Atom, int], budget: list[int]
) -> Iterator[tuple[int | None, int]]:
    """The stretches of cells that one block touches over all rounds; (None, 0) for what is not known."""
    budget[0] -= 1
    if budget[0] <= 0:
        yield None, 0
        return
    if loops:
        loop, *inner = loops
        if loop.value is None or loop.hi is None:
            yield None, 0
            return
        round_ = 0
        while True:
            here = {**at, loop.variable: round_}
            current, end = number(loop.value, here), number(loop.hi, here)
            if current is None or end is None:
                yield None, 0
                return
            if current >= end or budget[0] <= 0:
                return
            yield from _stretches(values, span, inner, here, budget)
            round_ += 1
    context = values.context(span.access)
    guards = [truth(place.condition, at) for place in context.chain() if place.condition is not None]
    if False in guards:
        return
    if None in guards:
        yield None, 0
        return
    first, length, extent = number(span.first, at), number(span.length, at), _extent(values, span, at)
    if first is None or length is None or extent is None:
        yield None, 0
        return
    yield max(0, first), min(extent, first + length)


def _extent(values: Values, span: Covered, at: dict[Atom, int]) -> int | None:
    return number(values.extent(span.access.base, span.axis), at)


__all__ = ["Covered", "hangs_on_the_grid"]

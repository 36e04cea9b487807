"""Which barriers each block passes at numbers: the last word on whether arithmetic really parts the blocks.

What tells two blocks apart at one construct need not do so in the end: they may have left in an earlier round, or never
come there. Running the control flow of all blocks of a few small launches shows it.
"""

from __future__ import annotations

from itertools import islice

from phobos.semantics import ir
from phobos.semantics.blockrun import barriers_passed
from phobos.semantics.concrete import number, plain_atoms
from phobos.semantics.conditions import polys
from phobos.semantics.grid import grid_of, has_one_axis
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.values import statements_of, values_of
from phobos.semantics.variation import MOST_BLOCKS, count_of, settings_for

MOST_LAUNCHES = 60


@fact
def blocks_agree(program: Program) -> bool:
    """Whether in every launch tried all blocks pass the same barriers; not where data decides, or nothing was tried."""
    values = values_of(program)
    concerned: list[Poly] = []
    for loop in values.loops.values():
        concerned += [side for side in (loop.lo, loop.hi, loop.step) if side is not None]
    for statement in statements_of(program.body):
        if isinstance(statement, (ir.If, ir.While)):
            concerned += polys(values.condition(statement.condition))
    grid = grid_of(program)
    uses = () if grid.persistent else grid.axes[0].uses
    concerned += [side for use in uses for side in (use.extent, use.divisor)]
    concerned += [cap.extent for cap in grid.caps]
    kinds = ("dim", "param", "const")
    atoms = {atom for poly in concerned for atom in plain_atoms(poly) if atom[0] in kinds}
    tried = False
    for settings in islice(settings_for(values, atoms, concerned), MOST_LAUNCHES):
        count = _blocks(program, settings)
        if count is None or not has_one_axis(program):
            continue
        first: object = None
        for block in range(min(count, MOST_BLOCKS)):
            at: dict[Atom, int] = {**settings, ("block", 0): block, ("block", 1): 0, ("block", 2): 0}
            at |= {("blocks", 0): count, ("blocks", 1): 1, ("blocks", 2): 1}
            passed = barriers_passed(values, at)
            if passed is None or (block and passed != first):
                return False
            first = passed
            tried = tried or block > 0
    return tried


def _blocks(program: Program, settings: dict[Atom, int]) -> int | None:
    """The number of blocks at a setting; None where no launch would have it."""
    grid = grid_of(program)
    count = settings["blocks", 0]
    if not grid.persistent and grid.axes[0].uses:
        counts = {count_of(use, settings) for use in grid.axes[0].uses}
        if len(counts) > 1:
            return None
        count = counts.pop()
    most = [number(cap.extent, settings) for cap in grid.caps if cap.axis == 0]
    return None if any(cells is not None and count > cells for cells in most) else count


__all__ = ["blocks_agree"]

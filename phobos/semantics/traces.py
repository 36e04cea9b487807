"""Which barriers the blocks of small launches pass: the last word on whether they part.

What tells two blocks apart at one construct need not do so in the end: they may have left in an earlier round, or never
come there. Carrying out a few launches at chosen numbers shows it, and shows too where no closed form tells.
"""

from __future__ import annotations

from collections import Counter

from phobos.semantics import ir
from phobos.semantics.concrete import number, plain_atoms
from phobos.semantics.conditions import polys
from phobos.semantics.grid import grid_of, has_one_axis
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.rehearsal import VARIANTS, rehearsals_of
from phobos.semantics.values import statements_in, values_of
from phobos.semantics.variation import LARGEST_GRID, Apart, agreed_count, settings_for
from phobos.value import value

EVERY = 3  # of the sizes are tried with one grid


@value
class Parting:
    """`at`: barriers that some blocks wait at for ever, in the first launch in which blocks parted.

    `agreed`: the launches in which they did not.
    """

    at: frozenset[ir.Barrier]
    agreed: int


@fact
def parting_of(program: Program) -> Parting:
    """What the launches tried show."""
    values = values_of(program)
    concerned: list[Poly] = []
    for loop in values.loops.values():
        concerned += [side for side in (loop.lo, loop.hi, loop.step) if side is not None]
    for statement in statements_in(program):
        if isinstance(statement, (ir.If, ir.While)):
            concerned += polys(values.condition(statement.condition))
    grid = grid_of(program)
    uses = () if grid.persistent else grid.axes[0].uses
    concerned += [side for use in uses for side in (use.extent, use.divisor)]
    concerned += [cap.extent for cap in grid.caps]
    atoms = {atom for poly in concerned for atom in plain_atoms(poly) if atom[0] in ("dim", "param", "const")}
    agreed = 0
    tried: Counter[int] = Counter()  # by grid
    rehearsals = rehearsals_of(program)
    for settings in settings_for(values, atoms, concerned) if has_one_axis(program) else ():
        asked = settings["blocks", 0]
        tried[asked] += 1
        if tried[asked] % EVERY != len(tried) % EVERY:
            continue  # another grid has its turn at these sizes
        count = _blocks(program, settings)
        if count is None or not 1 < count <= LARGEST_GRID:
            continue
        sizes = {str(atom[1]): n for atom, n in settings.items() if atom[0] in ("dim", "param")}
        seen = rehearsals.seen(tried[asked] // EVERY % len(VARIANTS), sizes, (count, 1, 1))
        if seen is None:
            break
        if seen.parted:
            return Parting(seen.parted, agreed)
        agreed += not seen.stopped
    return Parting(frozenset(), agreed)


def parts_at(program: Program, example: Apart) -> bool:
    """Whether the blocks part in a launch that has the grid and the sizes of an example."""
    if not has_one_axis(program) or example.grid > LARGEST_GRID:
        return False
    rehearsals = rehearsals_of(program)
    for which in range(len(VARIANTS)):
        seen = rehearsals.seen(which, dict(example.sizes), (example.grid, 1, 1))
        if seen is not None and seen.parted:
            return True
    return False


def _blocks(program: Program, settings: dict[Atom, int]) -> int | None:
    """The number of blocks at a setting; None where no launch would have it."""
    grid = grid_of(program)
    count = settings["blocks", 0]
    if not grid.persistent and grid.axes[0].uses:
        agreed = agreed_count(grid.axes[0], settings)
        if agreed is None:
            return None
        count = agreed
    most = [number(cap.extent, settings) for cap in grid.caps if cap.axis == 0]
    return None if any(cells is not None and count > cells for cells in most) else count


__all__ = ["Parting", "parting_of", "parts_at"]

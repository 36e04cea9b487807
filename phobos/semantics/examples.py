"""Races seen in small launches, for pairs of accesses that arithmetic does not decide.

A few launches of a kernel are carried out, each once and only as long as somebody asks. Counters begin at 0 there,
as they do where nobody says otherwise. A launch in which a point, a step or a divisor is wrong would be refused, and
is no example.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.semantics import ir
from phobos.semantics.cells import axes_of
from phobos.semantics.concrete import plain_atoms
from phobos.semantics.conditions import polys
from phobos.semantics.grid import grid_of, has_one_axis
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.rehearsal import NOUGHT, VARIANTS, rehearsals_of
from phobos.semantics.rehearsed_launch import Met, Seen, Touch
from phobos.semantics.values import statements_of, values_of
from phobos.semantics.variation import LARGEST_GRID, agreed_count, has_cells, settings_for
from phobos.value import value

MOST_LAUNCHES = 12
MOST_SPENT = 16_000  # of what launches spend, in all of them


@value
class Example:
    """A race: the grid, extents and parameters, two blocks and the cell."""

    counts: tuple[int, int, int]
    sizes: tuple[tuple[str, int], ...]
    met: Met


class Examples:
    """The launches of one program that are looked through for races."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._seen: list[tuple[Seen, tuple[int, int, int], dict[str, int]]] = []
        self._more = self._launches()

    def of(self, one: Touch, other: Touch, begins: ir.Barrier | None) -> Example | None:
        """A race of two accesses in a phase that begins at that barrier (None: at the start of the kernel)."""
        told = frozenset((one, other)), begins
        for seen, counts, sizes in self._every():
            met = seen.races.get(told)
            if met is not None:
                return Example(counts, tuple(sizes.items()), met)
        return None

    def _every(self) -> Iterator[tuple[Seen, tuple[int, int, int], dict[str, int]]]:
        yield from [*self._seen]
        for launch in self._more:
            self._seen.append(launch)
            yield launch

    def _launches(self) -> Iterator[tuple[Seen, tuple[int, int, int], dict[str, int]]]:
        rehearsals = rehearsals_of(self._program)
        counted = any(isinstance(s, ir.Atomic) for s in statements_of(self._program.body))
        spent = tried = 0
        for settings in self._settings():
            counts = _counts(self._program, settings)
            if counts is None or not 1 < counts[0] * counts[1] * counts[2] <= LARGEST_GRID:
                continue
            if tried >= MOST_LAUNCHES or spent >= MOST_SPENT:
                return
            sizes = {str(atom[1]): n for atom, n in settings.items() if atom[0] in ("dim", "param")}
            which, last_first = (NOUGHT, tried % 2 == 1) if counted else (tried % len(VARIANTS), False)
            seen = rehearsals.seen(which, sizes, counts, last_first)
            if seen is None:
                return
            tried += 1
            spent += seen.spent
            if not seen.refused:
                yield seen, counts, sizes

    def _settings(self) -> Iterator[dict[Atom, int]]:
        """Extents, parameters and grids, one grid after another in turn."""
        values = values_of(self._program)
        concerned: list[Poly] = []
        for loop in values.loops.values():
            concerned += [side for side in (loop.lo, loop.hi, loop.step) if side is not None]
        for statement in statements_of(self._program.body):
            match statement:
                case ir.If(condition=condition) | ir.While(condition=condition):
                    concerned += polys(values.condition(condition))
                case ir.Store(access=access) | ir.DefineView(access=access) if isinstance(access.base, ir.Tensor):
                    for axis, (first, length) in enumerate(axes_of(values, access)):
                        concerned += [first, length, values.extent(access.base, axis)]
        grid = grid_of(self._program)
        concerned += [side for axis in grid.axes for use in axis.uses for side in (use.extent, use.divisor)]
        concerned += [cap.extent for cap in grid.caps]
        atoms = {atom for poly in concerned for atom in plain_atoms(poly) if atom[0] in ("dim", "param", "const")}
        by_grid: dict[int, list[dict[Atom, int]]] = {}
        for settings in settings_for(values, atoms, concerned):
            by_grid.setdefault(settings["blocks", 0], []).append(settings)
        for turn in range(max(map(len, by_grid.values()), default=0)):
            for of_grid in by_grid.values():
                if turn < len(of_grid):
                    yield of_grid[turn]


def _counts(program: Program, settings: dict[Atom, int]) -> tuple[int, int, int] | None:
    """The grid at a setting; None where no launch would have it, or the caller chooses it."""
    grid = grid_of(program)
    counts = [1, 1, 1]
    for axis, read in enumerate(grid.axes):
        if grid.persistent or has_one_axis(program):
            counts[axis] = settings["blocks", axis] if axis == 0 else 1
        if not grid.persistent and read.uses:
            agreed = agreed_count(read, settings)
            if agreed is None:
                return None
            counts[axis] = agreed
        elif not grid.persistent and read.read:
            return None
    return (counts[0], counts[1], counts[2]) if has_cells(grid, counts, settings) else None


@fact
def examples_of(program: Program) -> Examples:
    """What launches have shown of a program, filled as it is asked for."""
    return Examples(program)


__all__ = ["Example", "Examples", "examples_of"]

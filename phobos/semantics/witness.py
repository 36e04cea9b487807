"""The search for two blocks that touch one cell: small grids, sizes near the borders of tiles, a few rounds.

What is found is an example that anybody can check by hand: extents, a grid, two block ids and the cell. Conditions
on loaded data count as free and make the finding less than certain; a value that has no closed form, or an
atomic's answer, leaves the question open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import TypeVar

from phobos.semantics import ir
from phobos.semantics.cells import Cells, conditions_of
from phobos.semantics.concrete import Assignment, number, plain_atoms, truth
from phobos.semantics.conditions import Condition, opaques, polys
from phobos.semantics.flow import FIRST, LATER, NEXT, SAME
from phobos.semantics.grid import CellCap, grid_of
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.rehearsal import reads_what_is_written, rehearsals_of
from phobos.semantics.rehearsed_launch import Place
from phobos.semantics.uniformity import Uniformity
from phobos.semantics.values import LoopFact, Values
from phobos.semantics.variation import agreed_count, diagonal, grids_of, interesting_numbers
from phobos.value import value

W = TypeVar("W")
MOST_SETTINGS = 72
MOST_ROUNDS = 3
MOST_BOXES = 120  # places of one side at one setting
MOST_BLOCKS = 10_000  # on one axis: a grid may be as large as an extent
MOST_TRIED = 100_000  # places looked at for one kernel: loops ten deep have endless rounds to try
MOST_REHEARSALS = 4  # launches carried out for one pair of stores
MOST_COUNT = 4  # blocks on one axis of an inferred grid that are looked at
OPAQUE = ("var", "expr", "atomic", "op", "wrap", "thread")


@value
class Question:
    """The program asked about. `axes` tell its blocks apart; `chosen`: the caller chooses the grid.

    Blocks that differ along `idle` axes alone do one and the same thing in the same rounds.
    """

    program: Program
    values: Values
    uniformity: Uniformity
    axes: tuple[int, ...]
    idle: frozenset[int]
    chosen: bool


@value
class Meeting:
    """`verdict`: "always" (allowed sizes at which two blocks meet), or "unknown" with its reason.

    `needs_data`: some condition on loaded data must hold for it. `settled`: no example changes that it is unknown.
    """

    verdict: str
    needs_data: bool
    blocks: tuple[int, int]
    grid: int
    sizes: tuple[tuple[str, int], ...]
    cell: tuple[int, ...]
    reason: str
    settled: bool = False

    @property
    def rank(self) -> int:
        return (2 if self.verdict == "unknown" else 0) + (1 if self.needs_data else 0)

    def witness(self, make: Callable[[tuple[int, int], int, tuple[tuple[str, int], ...], tuple[int, ...]], W]) -> W:
        return make(self.blocks, self.grid, self.sizes, self.cell)


@value
class Box:
    """Cells that one block touches in one round: `low` included, `high` excluded; `data`: if loaded data say so."""

    block: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    data: bool
    at: Assignment


def _unknown(reason: str, settled: bool = False) -> Meeting:
    return Meeting("unknown", False, (0, 0), 0, (), (), reason, settled)


@fact
def _left_of(program: Program) -> list[int]:
    """How many more places are looked at, counted down."""
    return [MOST_TRIED]


def search(question: Question, a: Cells, b: Cells, places: tuple[Place, Place] | None) -> Meeting:
    """Look for a meeting of two blocks by the accesses at two places (None: let no launch tell)."""
    if _left_of(question.program)[0] < 0:
        return _unknown(f"more than {MOST_TRIED:,} places would have to be looked at in this kernel")
    placed = [poly for cells in (a, b) for axis in cells.axes for poly in axis]
    if any(poly.mentions(kind) for poly in placed for kind in (*OPAQUE, "load", "unsigned")):
        return _unknown(f"a subscript {question.values.why_opaque(placed)}")
    stored = [one.value.type for one, kind in places or () if kind == "store" and isinstance(one, ir.Store)]
    if len(stored) == 2 and any(isinstance(one, ir.ErrorT) for one in stored):
        return _unknown("what is stored is in error already", True)
    guards = [condition for cells in (a, b) for condition in (*conditions_of(cells.context), *cells.reach.conditions)]
    around = [poly for guard in guards for poly in polys(guard)]
    if any(poly.mentions(kind) for poly in around for kind in OPAQUE):
        return _unknown(f"a condition around it {question.values.why_opaque(around)}")
    if any(opaque.expression is None for guard in guards for opaque in opaques(guard)):
        return _unknown("a condition around it changes in a way that has no closed form")
    params = sorted({str(atom[1]) for poly in placed for atom in plain_atoms(poly) if atom[0] == "param"})
    met: Meeting | None = None
    rehearsed = _Rehearsed(question.program, places)
    apart = 0
    without: dict[object, bool] = {}
    for settings in _settings(question, a, b):
        counts = _counts(question, settings)
        if counts is None:
            continue
        boxes = [_boxes(question, cells, settings, counts) for cells in (a, b)]
        found = False
        for one, other in product(*boxes):
            if one.block == other.block or _alike(question, one, other):
                continue
            cell = tuple(max(x, y) for x, y in zip(one.low, other.low))
            if any(c >= min(x, y) for c, x, y in zip(cell, one.high, other.high)):
                continue
            data = one.data or other.data
            if not rehearsed.happens(settings, counts, data):
                continue
            found = True
            if met is None or (met.needs_data and not data):
                met = _met(question, one, other, counts, settings, cell, data)
            break
        if not found and len({box.block for side in boxes for box in side}) > 1:
            apart += 1
        key = tuple(settings["param", name] for name in params)
        without[key] = without.get(key, False) or found
        if met is not None and not met.needs_data and not params and not question.chosen:
            return met
        if rehearsed.spent:
            break
    if met is None:
        return _unknown(rehearsed.reason)
    if question.chosen and apart:
        return _unknown("two blocks meet in some grids and sizes, and not in others", True)
    if params and not all(without.values()):
        return _unknown(f"two blocks meet for some values of `{params[0]}`, and not for others", True)
    return met


class _Rehearsed:
    """Whether two accesses that meet by arithmetic do so in a launch that is carried out, two stores with two values.

    `needed`: what two stores put there comes from memory that the kernel writes, so that the text does not say what it
    is. Then they differ only where a launch shows it.
    """

    def __init__(self, program: Program, places: tuple[Place, Place] | None) -> None:
        self.said: set[str] = set()
        self._program = program
        self._places = places
        self._known: dict[object, str] = {}
        stores = [one for one, kind in places or () if kind == "store" and isinstance(one, ir.Store)]
        plain = [one.value for one in stores if one.op is None]
        self._values = len(plain) == 2
        self.needed = self._values and any(reads_what_is_written(program, one) for one in plain)

    @property
    def spent(self) -> bool:
        return len(self._known) >= MOST_REHEARSALS and "differ" not in self.said

    def happens(self, settings: dict[Atom, int], counts: tuple[int, int, int], data: bool) -> bool:
        """Whether they are taken to meet, and to differ, at a setting.

        Where they meet only for some `data`, that they are not seen to meet says nothing.
        """
        if self._places is None:
            return True
        sizes = {str(atom[1]): n for atom, n in settings.items() if atom[0] in ("dim", "param")}
        key = counts, tuple(sizes.items())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = rehearsals_of(self._program).meeting(*self._places, sizes, counts)
            self.said.add(known)
        match known:
            case "equal":
                return not self._values
            case "apart":
                return data
            case "unknown":
                return data or not self.needed
        return True

    @property
    def reason(self) -> str:
        """Why nothing was found, where that is known."""
        if "equal" in self.said:
            return "where two blocks were seen to meet they store equal values"
        if "unknown" in self.said:
            return "whether two blocks store different values in one place was not found out"
        if "apart" in self.said:
            return "two blocks reach one cell by arithmetic, and did not in any launch that was tried"
        return "no proof was found, and no example among small grids and sizes"


def _alike(question: Question, one: Box, other: Box) -> bool:
    if any(x != y for axis, (x, y) in enumerate(zip(one.block, other.block)) if axis not in question.idle):
        return False
    return all(number_ == other.at.get(atom) for atom, number_ in one.at.items() if atom[0] == "round")


def _met(
    question: Question,
    one: Box,
    other: Box,
    counts: tuple[int, int, int],
    settings: dict[Atom, int],
    cell: tuple[int, ...],
    data: bool,
) -> Meeting:
    axis = next((axis for axis in question.axes if one.block[axis] != other.block[axis]), question.axes[0])
    sizes = tuple((str(atom[1]), n) for atom, n in settings.items() if atom[0] in ("dim", "param"))
    return Meeting("always", data, (one.block[axis], other.block[axis]), counts[axis], sizes, cell, "")


def _settings(question: Question, a: Cells, b: Cells) -> Iterator[dict[Atom, int]]:
    """Assignments of extents, parameters, a grid, and the rounds that both blocks share."""
    values = question.values
    polynomials: list[Poly] = []
    for cells in (a, b):
        polynomials += [poly for axis in cells.axes for poly in axis]
        polynomials += cells.extents
        polynomials += cells.reach.given
        for condition in cells.reach.conditions:
            polynomials += polys(condition)
        for place in cells.context.chain():
            polynomials += place.given
            if place.condition is not None:
                polynomials += polys(place.condition)
            if place.loop is not None and place.loop.value is not None and place.loop.hi is not None:
                polynomials += [place.loop.value, place.loop.hi]
    grid = grid_of(question.program)
    for axis in grid.axes:
        for use in axis.uses:
            polynomials += [use.extent, use.divisor]
    interesting = interesting_numbers(polynomials)
    atoms = sorted({atom for poly in polynomials for atom in plain_atoms(poly)}, key=repr)
    names: list[Atom] = []
    choices: list[list[int]] = []
    for atom in atoms:
        match atom[0]:
            case "dim":
                step = values.knowledge.divisor_of_atom(atom)
                numbers = interesting[:7] if step == 1 else [step * n for n in (4, 1, 2, 3, 9)]
            case "param":
                numbers = [1, 2, *interesting[:2], 0]
            case _:
                continue
        names.append(atom)
        choices.append(numbers)
    indices = {loop.index for loop in _shared_loops(values, a)}
    indices |= {int(str(atom[1])) for atom in atoms if atom[0] == "at"}
    shared: list[Atom] = [("round", index) for index in sorted(indices)]
    for chosen in islice(diagonal(choices), MOST_SETTINGS):
        at: dict[Atom, int] = dict(zip(names, chosen))
        grids = grids_of(question.program) if question.program.is_persistent else (2,)
        for blocks in grids:
            for rounds in product(range(MOST_ROUNDS), repeat=min(len(shared), 2)):
                setting = dict(at)
                for which in range(3):
                    setting["blocks", which] = blocks if which in question.axes else 1
                for atom, number_ in zip(shared, rounds):
                    setting[atom] = number_
                for atom in shared[2:]:
                    setting[atom] = 0
                for atom in shared:
                    setting["at", atom[1]] = setting[atom]
                yield setting


def _shared_loops(values: Values, cells: Cells) -> list[LoopFact]:
    return [values.loops[loop] for loop, relation in cells.reach.rounds if relation in (SAME, NEXT, LATER)]


def _counts(question: Question, settings: dict[Atom, int]) -> tuple[int, int, int] | None:
    """The grid at a setting, None where no launch would have it."""
    grid = grid_of(question.program)
    counts = [settings["blocks", axis] for axis in range(3)]
    if not grid.persistent:
        for axis, inferred in enumerate(grid.axes):
            if inferred.uses:
                agreed = agreed_count(inferred, settings)
                if agreed is None:
                    return None
                counts[axis] = settings["blocks", axis] = agreed
    for cap in grid.caps:
        if counts[cap.axis] > _cells(cap, settings):
            return None
    return counts[0], counts[1], counts[2]


def _cells(cap: CellCap, settings: dict[Atom, int]) -> int:
    known = number(cap.extent, settings)
    return MOST_COUNT if known is None else known


def _boxes(
    question: Question,
    cells: Cells,
    settings: dict[Atom, int],
    counts: tuple[int, int, int],
) -> list[Box]:
    """Where each block of the grid touches the tensor, for the rounds that are its own."""
    relations = cells.reach.by_loop
    free: list[tuple[Atom, Sequence[int]]] = []
    fixed: dict[Atom, int] = {}
    loops = [at.loop for at in cells.context.chain() if at.loop is not None]
    for loop in loops:
        current = settings.get(("at", loop.index), 0)
        match relations.get(id(loop.statement)):
            case relation if relation == SAME:
                fixed[loop.variable] = current
            case relation if relation == NEXT:
                fixed[loop.variable] = current + 1
            case relation if relation == LATER:
                free.append((loop.variable, (current + 2, current + 1)))
            case relation if relation == FIRST:
                fixed[loop.variable] = 0
            case _:
                free.append((loop.variable, range(MOST_ROUNDS)))
    conditions = [*conditions_of(cells.context), *cells.reach.conditions]
    found: list[Box] = []
    left = _left_of(question.program)
    total = 0
    inferred = [axis.uses and not grid_of(question.program).persistent for axis in grid_of(question.program).axes]
    most = [MOST_COUNT if uses else MOST_BLOCKS for uses in inferred]
    ranges = [range(min(counts[axis], most[axis]) if axis in question.axes else 1) for axis in range(3)]
    for block in product(*ranges):
        for rounds in product(*(numbers for _, numbers in free)):
            left[0] -= 1
            if left[0] < 0:
                return found
            at = dict(settings)
            at.update(fixed)
            at.update(zip((atom for atom, _ in free), rounds))
            for axis in range(3):
                at["block", axis] = block[axis]
            box = box_at(cells, conditions, at, block)
            if box is not None:
                found.append(box)
                total += 1
                if total >= MOST_BOXES:
                    return found
    return found


def box_at(
    cells: Cells,
    conditions: Sequence[Condition],
    at: dict[Atom, int],
    block: tuple[int, ...],
) -> Box | None:
    """What an access touches at numbers; None where it does not run, or touches nothing."""
    data = False
    for place in cells.context.chain():
        if place.loop is not None:
            for poly in place.given:
                known = number(poly, at)
                if known is not None and known < 0:
                    return None
                data = data or known is None
    for poly in cells.reach.given:
        known = number(poly, at)
        if known is not None and known < 0:
            return None
    for condition in conditions:
        holds = truth(condition, at)
        if holds is False:
            return None
        data = data or holds is None
    low: list[int] = []
    high: list[int] = []
    for (first, length), extent in zip(cells.axes, cells.extents):
        start, count, size = number(first, at), number(length, at), number(extent, at)
        if start is None or count is None or size is None:
            return None
        low.append(max(0, start))
        high.append(min(size, start + count))
        if low[-1] >= high[-1]:
            return None
    return Box(block, tuple(low), tuple(high), data, at)


__all__ = ["Box", "Meeting", "Question", "box_at", "search"]

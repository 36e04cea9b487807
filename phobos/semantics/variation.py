"""Whether blocks can be told apart by arithmetic alone: the search for a witness.

For a condition, or a loop's number of rounds, that holds the block index, look for a small grid, sizes, rounds and
two blocks at which it differs while every condition around it lets both blocks in. Loaded data is taken to be
the same for both: a witness found here needs none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from phobos.semantics.concrete import number, plain_atoms, truth
from phobos.semantics.conditions import Condition, opaques, polys
from phobos.semantics.grid import Axis, Grid, GridUse, grid_of
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program
from phobos.semantics.values import Context, LoopFact, Values
from phobos.value import value

GRIDS = (2, 3, 5)
MOST_SETTINGS = 160
MOST_ROUNDS = 3
MOST_BLOCKS = 12  # that are looked at in a large grid, and the last ones
LAST_BLOCKS = 3
LARGEST_GRID = 130


@value
class Apart:
    """Two blocks of a grid that differ, and the sizes at which they do."""

    blocks: tuple[int, int]
    grid: int
    sizes: tuple[tuple[str, int], ...]


def condition_tells_apart(
    values: Values, condition: Condition, context: Context, reached: Context | None = None
) -> Apart | None:
    """A witness that two blocks find the condition different, or None where none was found.

    `reached` is a place that one of the two must be able to reach then.
    """
    return _search(values, context, (condition,), None, reached)


def trips_tell_apart(values: Values, loop: LoopFact, context: Context, reached: Context | None = None) -> Apart | None:
    """A witness that two blocks have different numbers of rounds, or None where none was found."""
    if loop.lo is None or loop.hi is None or loop.step is None:
        return None
    return _search(values, context, (), loop, reached)


def _search(
    values: Values,
    context: Context,
    conditions: Sequence[Condition],
    loop: LoopFact | None,
    reached: Context | None,
) -> Apart | None:
    guards: list[Condition] = []
    bounds: list[tuple[Poly, Poly]] = []
    for place in context.chain():
        if place.condition is not None:
            guards.append(place.condition)
        if place.loop is not None and place.loop.value is not None and place.loop.hi is not None:
            bounds.append((place.loop.value, place.loop.hi))
    held = set(map(id, guards))  # of who comes to the place itself, more need not be asked
    there = [
        at.condition
        for at in (reached.chain() if reached is not None else ())
        if at.condition is not None and id(at.condition) not in held
    ]
    asked: list[Poly] = [poly for condition in conditions for poly in polys(condition)]
    if loop is not None and loop.lo is not None and loop.hi is not None and loop.step is not None:
        asked += [loop.lo, loop.hi, loop.step]
    if any(opaque.key[0] == "left" for guard in guards for opaque in opaques(guard)):
        return None  # who is still there hangs on the rounds of a loop that may be left for good
    around: list[Poly] = [poly for guard in (*guards, *there) for poly in polys(guard)]
    around += [side for bound in bounds for side in bound]
    atoms = {atom for poly in (*asked, *around) for atom in plain_atoms(poly)}
    free = [key for condition in (*conditions, *guards) for key in dict.fromkeys(o.key for o in opaques(condition))]
    free = list(dict.fromkeys(free))[:3]
    axis = _axis_of(atoms)
    inferred = grid_of(values.program).axes[axis]
    uses = inferred.uses if not values.program.is_persistent else ()
    sizing = [poly for use in uses for poly in (use.extent, use.divisor)]
    atoms |= {atom for poly in sizing for atom in plain_atoms(poly)}
    for settings in settings_for(values, atoms, (*asked, *around, *sizing)):
        grid = agreed_count(inferred, settings) if uses else settings["blocks", axis]
        if grid is None:
            continue  # the uses disagree, and the launch is refused
        settings["blocks", axis] = grid
        for flags in product((True, False), repeat=len(free)):
            opaque = dict(zip(free, flags))
            seen: dict[object, tuple[int, bool]] = {}
            for block in (*range(min(grid, MOST_BLOCKS)), *range(max(grid - LAST_BLOCKS, MOST_BLOCKS), grid)):
                at = dict(settings)
                for other_axis in range(3):
                    at["block", other_axis] = block if other_axis == axis else 0
                if any(truth(guard, at, opaque) is False for guard in guards):
                    continue
                if any(_outside(value_, hi, at) for value_, hi in bounds):
                    continue
                found = _answer(conditions, loop, at, opaque)
                if found is None:
                    continue
                arrives = all(truth(guard, at, opaque) is not False for guard in there)
                for other, (earlier, arrived) in seen.items():
                    if other != found and (arrives or arrived):
                        sizes = tuple(
                            (str(atom[1]), n) for atom, n in settings.items() if atom[0] in ("dim", "param", "const")
                        )
                        return Apart((earlier, block), grid, sizes)
                if found not in seen or arrives:
                    seen[found] = (block, arrives)
    return None


def _count(use: GridUse, settings: Mapping[Atom, int]) -> int:
    """`ceil(extent / divisor)` of an inferred grid at a setting."""
    extent, divisor = number(use.extent, settings), number(use.divisor, settings)
    return 0 if extent is None or not divisor or divisor < 0 else max(0, -(-extent // divisor))


def agreed_count(axis: Axis, settings: Mapping[Atom, int]) -> int | None:
    """The blocks along an inferred axis at a setting; None where its uses disagree."""
    found = {_count(use, settings) for use in axis.uses}
    return found.pop() if len(found) == 1 else None


def has_cells(grid: Grid, counts: Sequence[int], settings: Mapping[Atom, int]) -> bool:
    """Whether there are no more blocks than cells for them, as far as extents are known."""
    known = ((cap.axis, number(cap.extent, settings)) for cap in grid.caps)
    return all(most is None or counts[axis] <= most for axis, most in known)


def _axis_of(atoms: set[Atom]) -> int:
    axes = [int(str(atom[1])) for atom in atoms if atom[0] == "block"]
    return min(axes, default=0)


def _outside(current: Poly, hi: Poly, at: dict[Atom, int]) -> bool:
    a, b = number(current, at), number(hi, at)
    return a is not None and b is not None and a >= b


def _answer(
    conditions: Sequence[Condition], loop: LoopFact | None, at: dict[Atom, int], opaque: dict[tuple[object, ...], bool]
) -> object:
    if loop is None:
        return truth(conditions[0], at, opaque)
    assert loop.lo is not None and loop.hi is not None and loop.step is not None
    lo, hi, step = number(loop.lo, at), number(loop.hi, at), number(loop.step, at)
    if lo is None or hi is None or step is None or step <= 0:
        return None
    return max(0, -(-(hi - lo) // step))


def settings_for(values: Values, atoms: set[Atom], concerned: Sequence[Poly]) -> Iterator[dict[Atom, int]]:
    """Assignments of grids, sizes, parameters and rounds, the likely ones first; loaded data is 0 or 1."""
    interesting = interesting_numbers(concerned)
    choices: list[tuple[Atom, list[int]]] = []
    for atom in sorted(atoms, key=repr):
        match atom[0]:
            case "block" | "blocks":
                continue
            case "dim":
                step = values.knowledge.divisor_of_atom(atom)
                numbers = interesting if step == 1 else [step * n for n in (1, 2, 3, 4, 8)]
            case "param":
                numbers = [1, 2, 0, *interesting[:3]]
            case "const":
                numbers = [values.program.constants[str(atom[1])].value]
            case "round" | "trips":
                numbers = list(range(MOST_ROUNDS))
            case _:
                numbers = [0, 1]
        choices.append((atom, numbers))
    names = [atom for atom, _ in choices]
    for grid in (*grids_of(values.program), *_larger_grids(values.program, concerned)):
        for chosen in islice(diagonal([n for _, n in choices]), MOST_SETTINGS // len(GRIDS)):
            settings: dict[Atom, int] = dict(zip(names, chosen))
            for axis in range(3):
                settings["blocks", axis] = grid
            yield settings


def grids_of(program: Program) -> tuple[int, ...]:
    """Numbers of blocks to try: the one that a constant in `b + r * C` makes the only one, or a few small ones."""
    fixed = tuple(one.constant.value for one in grid_of(program).constants if not one.stride_form)[:1]
    return fixed or GRIDS


def _larger_grids(program: Program, concerned: Sequence[Poly]) -> tuple[int, ...]:
    """A grid beyond small promised sizes, and those with the block that a number in the text speaks of."""
    if grids_of(program) != GRIDS:
        return ()
    found: set[int] = {MOST_BLOCKS}
    for poly in concerned:
        for monomial, c in poly.terms.items():
            if len(monomial) == 1 and monomial[0][0] == "block":
                found.add(abs(poly.terms.get((), 0)) // abs(c) + 2)
    return tuple(sorted(grid for grid in found if max(GRIDS) < grid <= LARGEST_GRID))[:3]


def interesting_numbers(concerned: Sequence[Poly]) -> list[int]:
    """Sizes near the borders of the tiles that a kernel speaks of."""
    tiles: set[int] = set()
    for poly in concerned:
        for monomial, c in poly.terms.items():
            if (monomial and any(atom[0] in ("block", "round") for atom in monomial)) or not monomial:
                tiles.add(abs(c))
    found: dict[int, None] = {}
    for tile in sorted(tiles, reverse=True)[:4]:
        for n in (4 * tile, tile, 2 * tile + 1, 3 * tile, tile + 1, tile - 1, 9 * tile):
            if n > 0:
                found.setdefault(n)
    for n in (4, 1, 2, 3, 8, 64):
        found.setdefault(n)
    return list(found)


def diagonal(lists: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """All combinations, those with small indices in every list first."""
    if not lists:
        yield ()
        return
    longest = max(len(numbers) for numbers in lists)
    for reach in range(longest):
        for indices in product(*(range(min(reach + 1, len(numbers))) for numbers in lists)):
            if max(indices) == reach:
                yield tuple(numbers[i] for numbers, i in zip(lists, indices))

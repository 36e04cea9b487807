"""Loops of a persistent kernel that start at the block's own tile, and whether their step is all blocks' tiles.

`for t in range(b * F + c, hi, step)`, or a `while` that counts so: with a step of `F * ctx.blocks.x` every round of all
blocks covers one unbroken stretch. PH211, PH212 and the race rules (which stay silent about what follows) read this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from phobos.check.walk import accesses_of, places_of
from phobos.diagnostic import Span, plural
from phobos.semantics import ir
from phobos.semantics.coverage import Covered, hangs_on_the_grid
from phobos.semantics.grid_constants import grid_constants_of
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.reaching import reaching
from phobos.semantics.values import LoopFact, Values, symbolic_values_of, values_of
from phobos.semantics.walking import statements_of
from phobos.value import value

BLOCK: Atom = ("block", 0)
GRID: Atom = ("blocks", 0)
CHANGING = ("block", "load", "atomic", "unsigned", "var", "expr", "thread", "unknown")
GRIDS = (1, 2, 3, 5)
ROUNDS = 4  # looked at, of the loop itself
MOST = 64  # rounds of inner loops, and spans, that are looked at


@value
class Stride:
    """A mismatch. `kind`: "grid" (the step holds the grid's extent), "literal" (PH212) or "other".

    `first` is F, `step` the step, both as the text has them (constants by name). `flaw` says what goes wrong, for
    "grid", and `certain` that sizes were found at which it happens; `literal` is the number of blocks that is
    written, for "literal". `place` is the step, in a `while` what moves its variable on, or, in a loop that counts
    its rounds, the index that is computed from the round; `start` where the block's own start stands.
    """

    loop: ir.For | ir.While
    place: Span
    start: Span | None
    calls: tuple[Span, ...]
    kind: str
    first: Poly
    step: Poly
    flaw: str
    certain: bool
    literal: int


def grid_constants(program: Program) -> frozenset[ir.Constant]:
    return frozenset(one.constant for one in grid_constants_of(program))


@fact
def strides_of(program: Program) -> tuple[Stride, ...]:
    """Every loop whose step does not fit its start, however it counts its rounds."""
    if not program.is_persistent:
        return ()
    symbolic, values = symbolic_values_of(program), values_of(program)
    names = {constant.name for constant in grid_constants(program)}

    def written(poly: Poly) -> Poly:
        return poly.substitute(lambda atom: Poly({(GRID,): 1}) if atom[0] == "const" and atom[1] in names else None)

    out: list[Stride] = []
    gaps: dict[Poly, list[tuple[Stride, list[SpanIn]]]] = {}  # by step
    for loop in values.loops.values():
        statement = loop.statement
        if statement in values.unreachable or any(one in values.unreachable for one in statement.body.statements[:1]):
            continue
        if statement in values.once:
            continue  # nothing is stepped to
        if loop.lo is not None and BLOCK not in loop.lo.atoms:
            out += _counted(program, values, loop)
        if loop.lo is None or loop.step is None:
            continue
        first = start_factor(loop.lo)
        text = symbolic.loops.get(statement)
        if first is None or text is None or text.lo is None or text.step is None or not _same_for_all(loop.step):
            continue
        if loop.step == first * Poly({(GRID,): 1}):
            continue
        shown_first, shown_step = written(text.lo.coefficient(BLOCK)), written(text.step)
        if GRID in loop.step.atoms:
            spans = list(_spans(program, loop, values))
            flaw, said = _flaw(values, loop, spans, loop.step)
            if flaw == "gap" or (flaw == "overlap" and isinstance(statement, ir.For)):
                certain = hangs_on_the_grid(values, _covered(spans))
                place, start = _places(program, statement)
                found = Stride(
                    statement, place, start, statement.calls, "grid", shown_first, shown_step, said, certain, 0
                )
                out.append(found)
                if flaw == "gap":
                    gaps.setdefault(loop.step, []).append((found, spans))
        elif isinstance(statement, ir.While):
            continue  # what is said of a fixed step is said of a `for`
        elif loop.step != first and _all_walk_to_one_end(loop) and _starts_stored_span(program, values, loop):
            literal = _multiple(shown_step, shown_first)
            kind = "literal" if literal > 1 else "other"
            place, start = _places(program, statement)
            out.append(
                Stride(statement, place, start, statement.calls, kind, shown_first, shown_step, "", False, literal)
            )
    filled: set[Stride] = set()
    for alike in gaps.values():
        if len(alike) > 1 and not hangs_on_the_grid(values, _covered([span for _, spans in alike for span in spans])):
            filled.update(stride for stride, _ in alike)  # each loop does what the others leave out
    return tuple(stride for stride in out if stride not in filled)


def _places(program: Program, loop: ir.For | ir.While) -> tuple[Span, Span | None]:
    """Where a loop says its step, and where it starts: of a `while`, what moves the variable that it asks on."""
    if isinstance(loop, ir.For):
        return loop.step.span, loop.lo.span
    body = frozenset(statements_of(loop.body))
    steps: list[ir.Assign] = []
    starts: list[Span] = []
    for given in reaching(program)[loop].values():
        steps += [one for one in given if one in body and isinstance(one, ir.Assign)]
        starts += [one.value.span for one in given - body if isinstance(one, (ir.Define, ir.Assign)) and one.value]
    if len(steps) != 1:
        return loop.condition.span, None
    return steps[0].value.span, starts[0] if len(starts) == 1 else None


def _counted(program: Program, values: Values, loop: LoopFact) -> Iterator[Stride]:
    """The same mistake in a loop that counts its rounds: `b * F + round * step`, the step holding the grid's extent."""
    spans = [s for s in _spans(program, loop, values) if s[3] and BLOCK in s[4].atoms]
    for _, axis, access, _, place, _ in spans:
        if not place.is_linear_in(BLOCK) or not place.is_linear_in(loop.variable):
            continue
        first, step = place.coefficient(BLOCK), place.coefficient(loop.variable)
        if GRID not in step.atoms or GRID in first.atoms or not _same_for_all(first) or not _same_for_all(step):
            continue
        if step == first * Poly({(GRID,): 1}):
            continue
        alike = [s for s in spans if s[2].base is access.base and s[4].coefficient(loop.variable) == step]
        flaw, said = _flaw(values, loop, alike, step)
        if flaw:
            sub = access.subs[axis]
            span = sub.index.span if isinstance(sub, ir.PointSub) else sub.first.span
            certain = hangs_on_the_grid(values, _covered(alike))
            yield Stride(loop.statement, span, None, access.calls, "grid", first, step, said, certain, 0)
            return


def start_factor(lo: Poly) -> Poly | None:
    """F where `lo` is `b * F + c` with F and c the same for all blocks."""
    if BLOCK not in lo.atoms or not lo.is_linear_in(BLOCK):
        return None
    factor = lo.coefficient(BLOCK)
    return factor if _same_for_all(factor) and _same_for_all(lo.without(BLOCK)) else None


def _all_walk_to_one_end(loop: LoopFact) -> bool:
    """Whether the loop's end is the same for all blocks; where it is not, each block has a stretch of its own."""
    return loop.hi is not None and not loop.hi.mentions("block")


def _same_for_all(poly: Poly) -> bool:
    return not any(poly.mentions(kind) for kind in CHANGING)


def _multiple(step: Poly, first: Poly) -> int:
    """k where `step` is `k * first` for a whole number k, else 0."""
    if not first.terms or step.terms.keys() != first.terms.keys():
        return 0
    ratios = {divmod(step.terms[m], c) for m, c in first.terms.items()}
    if len(ratios) != 1:
        return 0
    ((ratio, rest),) = ratios
    return ratio if rest == 0 else 0


SpanIn = tuple[str, int, ir.Access, bool, Poly, Poly]
"""(tensor, axis, access, stored, first cell, number of cells)"""


def _spans(program: Program, loop: LoopFact, values: Values) -> Iterator[SpanIn]:
    """Accesses to tensors in a loop's body whose place along one axis moves with its rounds."""
    accesses = accesses_of(program)
    for place in places_of(program):
        if loop.statement not in place.inside or place.statement in values.unreachable:
            continue
        for access, stored in accesses[place.statement]:
            if not isinstance(access.base, ir.Tensor):
                continue
            for axis, sub in enumerate(access.subs):
                if isinstance(sub, ir.PointSub):
                    first, length = values.poly(sub.index), Poly.of(1)
                else:
                    first, length = values.poly(sub.first), values.poly(sub.length)
                    if sub.static is not None:
                        length = Poly.of(sub.static)
                if loop.variable in first.atoms:
                    yield access.base.name, axis, access, stored, first, length


def _starts_stored_span(program: Program, values: Values, loop: LoopFact) -> bool:
    return any(
        stored and first.coefficient(loop.variable) == loop.step
        for _, _, _, stored, first, _ in _spans(program, loop, values)
    )


def _flaw(values: Values, loop: LoopFact, spans: list[SpanIn], step: Poly) -> tuple[str, str]:
    """What the step does wrong at some small grid, "gap" or "overlap", and in words; "" where nothing is found or the
    cells cannot be counted."""
    spans = _judged(spans)
    by_axis: dict[tuple[str, int], list[tuple[Poly, Poly]]] = {}
    for tensor, axis, _, _, first, length in spans:
        by_axis.setdefault((tensor, axis), []).append((first, length))
    for (tensor, _), found in by_axis.items():
        for grid in GRIDS:
            flaw = _flaw_at(values, loop, found, step, grid)
            if flaw is not None:
                shown_grid = plural(grid, "block")
                return flaw, (
                    f"with {shown_grid}, cells of `{tensor}` between the rounds are left out"
                    if flaw == "gap"
                    else f"with {shown_grid}, two blocks do the same cells of `{tensor}`"
                )
    return "", ""


def _judged(spans: list[SpanIn]) -> list[SpanIn]:
    """The stored spans, or all where none is stored."""
    spans = spans[:MOST]
    return [span for span in spans if span[3]] or spans


def _covered(spans: list[SpanIn]) -> list[Covered]:
    return [Covered(access, axis, first, length) for _, axis, access, _, first, length in _judged(spans)]


def _flaw_at(values: Values, loop: LoopFact, spans: list[tuple[Poly, Poly]], stride: Poly, grid: int) -> str | None:
    owners: dict[int, set[int]] = {}
    lows: list[int] = []
    step = _number(stride, {GRID: grid})
    if step is None or step <= 0:
        return None
    for block, round_ in product(range(grid), range(ROUNDS)):
        for first, length in spans:
            cells = _cells(values, first, length, {BLOCK: block, GRID: grid, loop.variable: round_})
            if cells is None:
                return None
            for low, high in cells:
                lows.append(low)
                for cell in range(low, high):
                    owners.setdefault(cell, set()).add(block)
    if any(len(who) > 1 for who in owners.values()):
        return "overlap"
    start = min(lows)
    end = start + step * (ROUNDS - 1)  # every block has done all its rounds up to here
    return "gap" if any(cell not in owners for cell in range(start, end)) else None


def _cells(values: Values, first: Poly, length: Poly, known: Mapping[Atom, int]) -> list[tuple[int, int]] | None:
    """The stretches of cells of a span, over all rounds of the inner loops that it moves with."""
    inner = [atom for atom in first.atoms if atom[0] == "round" and atom not in known]
    ranges: list[range] = []
    for atom in inner:
        loop = values.loop_of(atom)
        trips = None if loop is None or loop.trips is None else _number(loop.trips, known)
        if trips is None or trips > MOST:
            return None
        ranges.append(range(trips))
    out: list[tuple[int, int]] = []
    for rounds in product(*ranges):
        at = dict(known) | dict(zip(inner, rounds, strict=True))
        low, count = _number(first, at), _number(length, at)
        if low is None or count is None or count > 1 << 16:
            return None
        out.append((low, low + count))
    return out


def _number(poly: Poly, known: Mapping[Atom, int]) -> int | None:
    """The number a polynomial is at these atoms, None where another atom stands in it."""
    total = 0
    for monomial, c in poly.terms.items():
        for atom in monomial:
            if atom not in known:
                return None
            c *= known[atom]
        total += c
    return total

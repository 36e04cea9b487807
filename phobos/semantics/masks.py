"""Which slice can run past which extent, with its proof or its reason.

The emitter leaves a mask out only where `needed` is False; hover, PH115 and PH3xx read the same fact. Sound:
a start is never trusted for mentioning a loop variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Literal

from phobos.semantics import ir
from phobos.semantics.concrete import number, plain_atoms, truth
from phobos.semantics.grid import grid_of, show
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, Promise, fact
from phobos.semantics.signature import polys_told, signature
from phobos.semantics.values import Context, LoopFact, Values, values_of
from phobos.semantics.walking import loads_of
from phobos.value import value


@value
class Mask:
    """One axis of one sliced access.

    `needed` - a cell of the slice may lie outside. `reason` is a sentence for people: why it may, or the proof
    why it cannot. `peeled` - inside the loop given, every round but the last ragged one is proved inside
    (the loop splits into whole tiles and one masked remainder): those with `variable + peel <= hi`, where `peel`
    is at most the step. `promises` are those the proof used; `uses_grid` - it holds because the grid is no larger
    than the text says, which the launch must see to. `outside` - provably wholly outside a static extent (PH115).
    """

    needed: bool
    reason: str
    peeled: ir.For | None
    promises: tuple[Promise, ...]
    outside: bool
    uses_grid: bool = False
    peel: Poly | None = None


@value
class PointBound:
    """One axis of a point access: provably `inside`, `outside` (somewhere it runs), or `unknown`."""

    state: Literal["inside", "outside", "unknown"]
    reason: str
    promises: tuple[Promise, ...] = ()
    uses_grid: bool = False


@fact
def masks_of(program: Program) -> dict[ir.Access, tuple[Mask | None, ...]]:
    """For each access, a `Mask` per axis: None for points. Tensors and tiles alike."""
    prover = _Prover(program)
    return {
        access: tuple(
            prover.mask(access, axis, sub) if isinstance(sub, ir.SliceSub) else None
            for axis, sub in enumerate(access.subs)
        )
        for access in accesses_of(program)
    }


@fact
def points_of(program: Program) -> dict[ir.Access, tuple[PointBound | None, ...]]:
    """For each access, a `PointBound` per axis: None for slices."""
    prover = _Prover(program)
    return {
        access: tuple(
            prover.point(access, axis, sub) if isinstance(sub, ir.PointSub) else None
            for axis, sub in enumerate(access.subs)
        )
        for access in accesses_of(program)
    }


def accesses_of(program: Program) -> Iterator[ir.Access]:
    """Every access of a program, in the order of the text, views at their `let`."""
    for statement, loads in loads_of(program).items():
        yield from loads
        if isinstance(statement, (ir.Store, ir.DefineView)):
            yield statement.access


@fact
def grid_facts(program: Program) -> tuple[Poly, ...]:
    """What the launch sees to: no more blocks than the text says, never negative where it does."""
    return _limits(program, range(3))


@fact
def sure_grid_facts(program: Program) -> tuple[Poly, ...]:
    """Those of `grid_facts` that hold whoever says the grid.

    Where the uses of an index may disagree on it the caller has to say, and may say more than each of them.
    """
    axes = grid_of(program).axes
    agreed = [axis for axis in range(3) if len({(use.extent.key, use.divisor.key) for use in axes[axis].uses}) == 1]
    return _limits(program, agreed)


def _limits(program: Program, axes: Iterable[int]) -> tuple[Poly, ...]:
    """With what the uses of the block index on these axes say of an ordinary grid."""
    grid = grid_of(program)
    found = [*cap_facts(program)]
    if not grid.persistent:
        for axis in axes:
            found += [use.extent - 1 - use.divisor * Poly.atom("block", axis) for use in grid.axes[axis].uses]
    return tuple({limit.key: limit for limit in found}.values())[:MOST_LIMITS]


@fact
def cap_facts(program: Program) -> tuple[Poly, ...]:
    """Those that hold in every launch: a caller may ask for more blocks than the spans that are stored need."""
    grid = grid_of(program)
    caps = [cap.extent - 1 - Poly.atom("block", cap.axis) for cap in grid.caps]
    fixed = [Poly.of(one.constant.value - 1) - Poly.atom("block", 0) for one in grid.constants if not one.stride_form]
    return (*fixed[:1], *caps[: MOST_LIMITS - 1])


PLACED = re.compile(r"'(?:var|expr|load|unsigned|atomic|op|wrap|trips|bool|left|unknown|thread)'")
MOST_LIMITS = 12  # different limits of the grid that proofs use; leaving some out leaves masks in
MOST_ROUNDS = 4096  # of constant loops that are run to look for a point outside


def _walked(loop: LoopFact) -> list[Poly]:
    bounds = (loop.value, loop.lo, loop.hi, loop.step)
    return [bound for bound in bounds if bound is not None]


class _Prover:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.values: Values = values_of(program)
        self.grid = grid_facts(program)  # the launch refuses more where a mask was left out for it
        self.caps = cap_facts(program)
        self._masks: dict[str, tuple[Mask, int]] = {}

    def _proof(
        self, goals: Sequence[Poly], context: Context, limits: Sequence[Poly], extra: Sequence[Poly] = ()
    ) -> tuple[tuple[Promise, ...], bool] | None:
        """The promises that a proof of all goals needs, and whether it needs the grid; None where none is found."""
        if all((goal.constant or 0) >= 0 and goal.constant is not None for goal in goals):
            return (), False
        given = [*extra, *self.values.given(context)]
        dims = {str(a[1]) for g in (*goals, *given) for a in plain_atoms(g) if a[0] == "dim"}
        promises = tuple(p for p in self.program.promises if p.dim in dims and p.tile > 0)
        grid = [g for g in limits if any(a[0] == "block" for a in g.atoms)]
        if not any(goal.mentions("block") for goal in goals) and not any(g.mentions("block") for g in given):
            grid = []
        if not self._all(goals, given, promises, grid):
            return None  # not even with everything that may be believed
        attempts: list[tuple[tuple[Promise, ...], list[Poly]]] = [((), []), (promises, []), ((), grid)]
        for believed, trusted in (*attempts, (promises, grid)):
            if (promises or grid) and not self._all(goals, given, believed, trusted):
                continue
            for one in believed:
                fewer = tuple(p for p in believed if p is not one)
                if self._all(goals, given, fewer, trusted):
                    believed = fewer
            return believed, bool(trusted)
        return None

    def _all(
        self, goals: Sequence[Poly], given: Sequence[Poly], promises: Sequence[Promise], grid: Sequence[Poly]
    ) -> bool:
        knowledge = self.values.knowledge
        return all(knowledge.never_negative(goal, [*given, *grid], promises) for goal in goals)

    def mask(self, access: ir.Access, axis: int, sub: ir.SliceSub) -> Mask:
        if sub.whole:
            return Mask(False, "`:` is the whole axis", None, (), False)
        values = self.values
        first, length = values.poly(sub.first), values.poly(sub.length)
        extent = values.extent(access.base, axis)
        context = values.context(access)
        loops = [at.loop.statement for at in context.chain() if at.loop is not None]
        told = [polys_told((first, length, extent))]
        told += [polys_told(at.given if at.loop is None else (*at.given, *_walked(at.loop))) for at in context.chain()]
        asked = signature(*told) if not any(map(PLACED.search, told)) else None
        key = asked.text if asked is not None else f"{told[0]} {id(context)}"
        known = self._masks.get(key)
        if known is None:
            mask = self._decided(first, length, extent, context)
            known = mask, loops.index(mask.peeled) if mask.peeled is not None else -1
            self._masks[key] = known
        mask, position = known
        here = loops[position] if position >= 0 else None
        if mask.peeled is here or not isinstance(here, ir.For):
            return mask
        return Mask(mask.needed, mask.reason, here, mask.promises, mask.outside, mask.uses_grid, mask.peel)

    def _decided(self, first: Poly, length: Poly, extent: Poly, context: Context) -> Mask:
        goals = (first, extent - first - length)
        proof = self._proof(goals, context, self.grid)
        end = f"`{show(first)} :+ {show(length)}`"
        if proof is not None:
            promises, uses_grid = proof
            reason = f"{end} ends by `{show(extent)}`"
            if promises:
                reason += ", by " + " and ".join(f"@aligned({p.dim} = {p.tile})" for p in promises)
            if uses_grid:
                reason += ", in the grid that the text gives"
            return Mask(False, reason, None, promises, False, uses_grid)
        if extent.constant is not None and self._outside(first, length, extent, context):
            return Mask(True, f"{end} lies outside the extent {show(extent)}", None, (), True)
        reason = self._why(first, length, extent, context)
        for at in context.chain():
            if at.loop is None or not isinstance(at.loop.statement, ir.For):
                continue
            peeled = self._peeled(at.loop, first, length, goals, context)
            if peeled is not None:
                peel, (promises, uses_grid) = peeled
                return Mask(True, reason, at.loop.statement, promises, False, uses_grid, peel)
        return Mask(True, reason, None, (), False)

    def _peeled(
        self, loop: LoopFact, first: Poly, length: Poly, goals: tuple[Poly, Poly], context: Context
    ) -> tuple[Poly, tuple[tuple[Promise, ...], bool]] | None:
        if loop.value is None or loop.hi is None or loop.step is None or loop.variable not in plain_atoms(first):
            return None
        if loop.hi.constant is not None and loop.lo is not None and loop.lo.constant is not None:
            return None  # nothing is ragged about a loop whose rounds are all known
        for peel in (length, loop.step):
            if peel is length and not self.values.holds(loop.step - length, context):
                continue
            proof = self._proof(goals, context, self.grid, (loop.hi - loop.value - peel,))
            if proof is not None:
                return peel, proof
        return None

    def _outside(self, first: Poly, length: Poly, extent: Poly, context: Context) -> bool:
        holds = self.values.holds
        if not (holds(first - extent, context) or holds(-(first + length), context)):
            return False
        return not self.values.knowledge.contradictory(self.values.given(context))

    def _why(self, first: Poly, length: Poly, extent: Poly, context: Context) -> str:
        values = self.values
        if not self._all((first,), values.given(context), self.program.promises, self.grid):
            return f"the start `{show(first)}` can be negative"
        width = length.constant
        if width:
            if values.divisor(first) % width:
                return f"the start `{show(first)}` need not be a multiple of {width}"
            if values.divisor(extent) % width:
                return f"`{show(extent)}` need not be a multiple of {width}"
        return f"nothing keeps `{show(first)} + {show(length)}` from passing `{show(extent)}`"

    def point(self, access: ir.Access, axis: int, sub: ir.PointSub) -> PointBound:
        values = self.values
        index, extent = values.poly(sub.index), values.extent(access.base, axis)
        context = values.context(access)
        proof = self._proof((index, extent - 1 - index), context, self.caps)
        if proof is not None:
            promises, uses_grid = proof
            return PointBound("inside", f"`{show(index)}` is below `{show(extent)}`", promises, uses_grid)
        if extent.constant is not None:
            if self._outside(index, Poly.of(1), extent, context):
                return PointBound("outside", f"`{show(index)}` lies outside the extent {show(extent)}")
            worst = self._run(index, extent.constant, context)
            if worst is not None:
                return PointBound("outside", f"`{show(index)}` reaches {worst}, outside the extent {show(extent)}")
        return PointBound("unknown", f"nothing keeps `{show(index)}` inside `{show(extent)}`")

    def _run(self, index: Poly, extent: int, context: Context) -> int | None:
        """A value outside that the index takes in loops whose bounds are numbers, no matter what."""
        loops: list[tuple[Atom, int]] = []
        guards: list[Context] = []
        rounds = 1
        for at in context.chain():
            if at.loop is not None:
                trips = at.loop.trips.constant if at.loop.trips is not None else None
                if trips is None:
                    return None
                rounds *= trips
                loops.append((at.loop.variable, trips))
            elif at.condition is not None:
                guards.append(at)
        if not rounds or rounds > MOST_ROUNDS or not plain_atoms(index) <= {atom for atom, _ in loops}:
            return None
        for numbers in product(*(range(trips) for _, trips in loops)):
            at_round = dict(zip((atom for atom, _ in loops), numbers))
            if any(guard.condition is None or truth(guard.condition, at_round) is not True for guard in guards):
                continue
            reached = number(index, at_round)
            if reached is not None and not 0 <= reached < extent:
                return reached
        return None

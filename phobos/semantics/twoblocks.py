"""Two blocks in one phase: can an access of one touch a cell that an access of the other touches?

The values of either block are polynomials of its own index, its own rounds of the loops that the phase lets it run
freely, and what both share: extents, parameters, the rounds of the loops that the phase stands in, uniform data.
A proof splits into cases (which block is the lower, who is ahead in a loop, whose quotient is larger) and shows in
each that some axis keeps the cells apart, or that the case cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd

from phobos.semantics.cells import Cells
from phobos.semantics.combine import follows
from phobos.semantics.conditions import All, AnyOf, Condition, Opaque, consequences, differences
from phobos.semantics.flow import FIRST, FREE, LATER, NEXT, SAME
from phobos.semantics.grid import has_one_axis
from phobos.semantics.knowledge import ROOT, Knowledge, poly_of_key
from phobos.semantics.meeting import NESTED, Numbers
from phobos.semantics.poly import Atom, Monomial, Poly
from phobos.semantics.signature import Signature
from phobos.semantics.solve import at_least_one, never_negative, tightened
from phobos.semantics.tickets import tickets_of
from phobos.semantics.values import Values
from phobos.value import value

Shared = Callable[[Atom], bool]
"""Whether an opaque atom has one value for all blocks."""

MOST_NODES = 100
MOST_CHOICES = 8  # of one from each condition of which some part holds
FEW_NODES = 24  # of a proof that would be a bonus, without its last and dearest step
DEEPEST = 6
QUICK = 12  # the effort of a proof that a split into cases may still make easy


@value
class Given:
    """What a condition says, its atoms renamed."""

    guards: tuple[Poly, ...]  # never negative
    nonzero: tuple[Poly, ...]
    flags: tuple[tuple[object, bool], ...]  # opaque conditions that hold, by shared name


@value
class Side:
    """One block's view of its access: what its conditions and its way say, and choices, of each of which one holds."""

    axes: tuple[tuple[Poly, Poly], ...]
    guards: tuple[Poly, ...]
    nonzero: tuple[Poly, ...]
    flags: tuple[tuple[object, bool], ...]
    choices: tuple[tuple[Given, ...], ...]

    def where(self, given: Given) -> Side:
        guards, nonzero = (*self.guards, *given.guards), (*self.nonzero, *given.nonzero)
        return Side(self.axes, guards, nonzero, (*self.flags, *given.flags), self.choices)


class Pair:
    """The renamed values of two blocks, and what is known of them."""

    def __init__(
        self,
        values: Values,
        a: Cells,
        b: Cells,
        shared: Shared,
        limits: Sequence[Poly],
        axes: Sequence[int],
        names: Signature | None = None,
    ) -> None:
        """With `names` loops and places go by them, so that a proof is the same whichever kernel it is about."""
        self.values = values
        self._names = names
        self.block_axes = tuple(axes)
        known = values.knowledge
        self.knowledge = Knowledge(values.program, least_extent=1)  # blocks of an empty tensor meet nowhere
        self.knowledge.parents, self.knowledge.depths = known.parents, known.depths
        self._shared = shared
        self._relations = {
            0: a.reach.by_loop,
            1: b.reach.by_loop,
        }
        self._renamed: dict[tuple[Atom, int], Poly] = {}
        self.own: dict[Atom, tuple[Atom, int]] = {}  # atoms of one block: what they were, and whose
        self.a = self._side(a, 0)
        self.b = self._side(b, 1)
        self._both = ((a, self.a), (b, self.b))
        self._limits = limits
        self._bounds: list[Poly] | None = None
        self._thorough = True
        self._question: list[_Case] = []
        self._met: bool | None = None
        self.guarded = any(
            at.condition is not None for cells in (a, b) for at in cells.context.chain()
        ) or bool(a.reach.way or b.reach.way)
        self._mirrored = a is b or (a.axes is b.axes and a.context is b.context and a.reach.key == b.reach.key)

    # --- renaming ---------------------------------------------------------------------------------

    def rename(self, poly: Poly, who: int) -> Poly:
        return poly.substitute(lambda atom: self._atom(atom, who))

    def _atom(self, atom: Atom, who: int) -> Poly:
        key = (atom, who)
        known = self._renamed.get(key)
        if known is None:
            known = self._new(atom, who)
            self._renamed[key] = known
        return known

    def _new(self, atom: Atom, who: int) -> Poly:
        match atom[0]:
            case "dim" | "param" | "const" | "blocks":
                return Poly({(atom,): 1})
            case "at":
                return Poly.atom("round", self._loop(atom[1]))
            case "block":
                if int(str(atom[1])) not in self.block_axes:
                    return Poly({}) if has_one_axis(self.values.program) else Poly({(atom,): 1})
                return self._own(("block", atom[1], who), atom, who)
            case "round":
                loop = self.values.by_atom.get(atom)
                relation = self._relations[who].get(id(loop.statement)) if loop is not None else None
                numbered: Atom = ("round", self._loop(atom[1]))
                one = Poly({(numbered,): 1})
                if relation == SAME:
                    return one
                if relation == NEXT:
                    return one + 1
                if relation == LATER:
                    return one + 1 + self._own((*numbered, who, "later"), atom, who)
                if relation == FIRST:
                    return Poly({})
                return self._own((*numbered, who), atom, who)
            case "div" | "min" | "max":
                a = self.rename(poly_of_key(atom[1]), who)
                b = self.rename(poly_of_key(atom[2]), who)
                if atom[0] == "div":
                    exact = self._small_quotient(a, b)
                    if exact is not None:
                        return exact
                renamed: Atom = (atom[0], a.key, b.key)
                self._copy(renamed, atom)
                if renamed != atom:
                    self.own.setdefault(renamed, (atom, who))
                return Poly({(renamed,): 1})
            case "op":
                a = self.rename(poly_of_key(atom[2]), who)
                b = self.rename(poly_of_key(atom[3]), who)
                renamed = ("op", atom[1], a.key, b.key)
                self._copy(renamed, atom)
                return Poly({(renamed,): 1})
            case "trips" if len(atom) == 4:
                renamed = ("trips", *(self.rename(poly_of_key(key), who).key for key in atom[1:]))
                self._copy(renamed, atom)
                return Poly({(renamed,): 1})
            case "wrap":
                renamed = ("wrap", atom[1], self.rename(poly_of_key(atom[2]), who).key)
                self._copy(renamed, atom)
                return Poly({(renamed,): 1})
        name = atom if self._names is None else self._names.canonical(atom)
        if self._shared(atom):
            tag = self._tag(self.values.knowledge.homes.get(atom, ROOT), who)
            if tag is not None:
                renamed = (*name, "both", tag)
                self._copy(renamed, atom)
                return Poly({(renamed,): 1})
        return self._own((*name, who), atom, who)

    def _loop(self, index: object) -> int:
        number = int(str(index))
        return number if self._names is None else self._names.loop(number)

    @staticmethod
    def _small_quotient(a: Poly, b: Poly) -> Poly | None:
        x, y = a.constant, b.constant
        if x is None or not y:
            return None
        return Poly.of(abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))

    def _own(self, renamed: Atom, atom: Atom, who: int) -> Poly:
        self._copy(renamed, atom)
        self.own[renamed] = (atom, who)
        return Poly({(renamed,): 1})

    def _copy(self, renamed: Atom, atom: Atom) -> None:
        known = self.values.knowledge
        self.knowledge.signs[renamed] = known.nonneg(atom)
        if atom in known.bounded:
            self.knowledge.bounded[renamed] = known.bounded[atom]

    def _tag(self, home: int, who: int) -> tuple[object, ...] | None:
        """When both blocks agree on every round that a value depends on, the name of those rounds."""
        parts: list[object] = []
        while home != ROOT:
            loop = self.values.by_atom.get(("round", home))
            relation = self._relations[who].get(id(loop.statement)) if loop is not None else None
            if relation not in (SAME, NEXT, FIRST):
                return None
            parts.append((self._loop(home), relation))
            home = self.values.knowledge.parents[home]
        return tuple(parts)

    def _side(self, cells: Cells, who: int) -> Side:
        axes = tuple((self.rename(first, who), self.rename(length, who)) for first, length in cells.axes)
        guards: list[Poly] = []
        nonzero: list[Poly] = []
        flags: list[tuple[object, bool]] = []
        choices: list[tuple[Given, ...]] = []
        held: list[tuple[Condition, int]] = []
        for at in cells.context.chain():
            if at.condition is not None:
                guards += [self.rename(poly, who) for poly in at.given]
                held.append((at.condition, at.loop_index))
        guards += [self.rename(poly, who) for poly in cells.reach.given]
        for condition, home in [*held, *((condition, ROOT) for condition in cells.reach.conditions)]:
            nonzero += [self.rename(poly, who) for poly in differences(condition)]
            flags += self._flags(condition, home, who)
            for part in condition.parts if isinstance(condition, All) else (condition,):
                if isinstance(part, AnyOf) and len(part.parts) <= MOST_CHOICES:
                    choices.append(tuple(self._given(one, home, who) for one in part.parts))
        guards += at_least_one(nonzero, self.knowledge.nonneg)
        return Side(axes, tuple(guards), tuple(nonzero), tuple(flags), tuple(choices))

    def _given(self, condition: Condition, home: int, who: int) -> Given:
        guards = [self.rename(poly, who) for poly in consequences(condition)]
        nonzero = tuple(self.rename(poly, who) for poly in differences(condition))
        guards += at_least_one(nonzero, self.knowledge.nonneg)
        return Given(tuple(guards), nonzero, tuple(self._flags(condition, home, who)))

    @property
    def bounds(self) -> list[Poly]:
        """What is never negative by the bounds of loops, of the grid and of the tensor."""
        if self._bounds is None:
            found: list[Poly] = []
            for who, (cells, side) in enumerate(self._both):
                bounds = cells.bounds
                if bounds is None:
                    around = [at.given for at in cells.context.chain() if at.condition is None]
                    bounds = tuple(poly for given in around for poly in given)
                found += [self.rename(poly, who) for poly in bounds]
                found += [self.rename(limit, who) for limit in self._limits]
                for (first, length), extent in zip(side.axes, cells.extents):
                    found.append(self.rename(extent, who) - 1 - first)
                    found.append(first + length - 1)
            self._bounds = [poly for poly in found if self._tells(poly)]
        return self._bounds

    def _tells(self, poly: Poly) -> bool:
        """Whether it is news that a polynomial is never negative."""
        if any(c < 0 for c in poly.terms.values()):
            return True
        return any(atom[0] == "param" and not self.knowledge.nonneg(atom) for atom in poly.atoms)

    def _flags(self, condition: Condition, home: int, who: int) -> Iterator[tuple[object, bool]]:
        parts = condition.parts if isinstance(condition, All) else (condition,)
        for part in parts:
            if isinstance(part, Opaque):
                tag = self._tag(home, who)
                if tag is not None and self._shared(("condition", part.key, part.expression)):
                    yield (part.key, tag), part.positive

    # --- proving ----------------------------------------------------------------------------------

    def disjoint(self, alike_too: bool = False, nodes: int = MOST_NODES) -> bool:
        """Whether no cell is touched by both, whatever two blocks they are.

        With `alike_too` also blocks that no axis of these tells apart, in different accesses or rounds.
        """
        self._thorough = nodes > FEW_NODES
        self._question = [*self._cases(alike_too)]
        whole, ways = (self.a, self.b), self._chosen()
        proved = self._never_together(nodes, whole)
        proved = proved or (bool(ways) and all(self._never_together(nodes, way) for way in ways))
        self.a, self.b = whole
        return proved

    def _chosen(self) -> list[tuple[Side, Side]]:
        """The two with one of each choice, every combination; none where there is nothing to choose."""
        ways = [(self.a, self.b)]
        for who, side in enumerate((self.a, self.b)):
            for choice in side.choices:
                if len(ways) * len(choice) <= MOST_CHOICES:
                    ways = [(a, b.where(one)) if who else (a.where(one), b) for a, b in ways for one in choice]
        return ways if len(ways) > 1 else []

    def _never_together(self, nodes: int, sides: tuple[Side, Side]) -> bool:
        (self.a, self.b), self._met = sides, None
        mine = dict(self.a.flags)
        if any(mine.get(key, holds) != holds for key, holds in self.b.flags):
            return True
        budget = [nodes]
        return all(self._refuted(list(case.given), case.equal, 0, budget) for case in self._question)

    def _meet(self) -> bool:
        """Whether numbers are known at which the two meet: then nothing proves them apart."""
        if self._met is None:
            self._met = any(self._meet_in(case) for case in self._question)
        return self._met

    def _meet_in(self, case: _Case) -> bool:
        numbers = Numbers(self.knowledge)
        for (first, mine), (other, theirs) in zip(self.a.axes, self.b.axes):
            numbers.want((other + theirs - 1 - first, first + mine - 1 - other))
        numbers.want((*self.a.guards, *self.b.guards, *self.bounds, *case.given))
        numbers.want((*self.a.nonzero, *self.b.nonzero), nonzero=True)
        same = [Poly({(atom,): 1}) - poly for atom, poly in case.equal]
        return numbers.exist([*same, *(-poly for poly in same)])

    def _cases(self, alike_too: bool) -> Iterator[_Case]:
        """The ways in which two blocks differ: the first axis that tells them apart, and which is the lower."""
        equal: list[tuple[Atom, Poly]] = []
        for axis in self.block_axes:
            mine, other = ("block", axis, 0), ("block", axis, 1)
            distance = Poly({(other,): 1}) - Poly({(mine,): 1})
            for drawn in self._draws():
                yield _Case((distance - 1, *drawn), tuple(equal))
                if not self._mirrored:  # else the other order is the same question
                    yield _Case((-distance - 1, *drawn), tuple(equal))
            equal.append((other, Poly({(mine,): 1})))
        if alike_too and self._mirrored:
            yield from self._other_rounds(equal)
        elif alike_too or not self.block_axes:
            yield _Case((), tuple(equal))

    def _draws(self) -> Iterator[tuple[Poly, ...]]:
        """Which of two tickets of one counter was drawn first: two blocks never have the same."""
        tickets = tickets_of(self.values.program)
        drawn = [(who, renamed, tickets[atom]) for renamed, (atom, who) in self.own.items() if atom in tickets]
        for mine, x, one in drawn:
            for whose, y, other in drawn:
                if mine < whose and one.counter == other.counter:
                    distance = Poly({(x,): 1}) - Poly({(y,): 1}) + (other.ahead - one.ahead)
                    apart = min(one.apart, other.apart)
                    yield (distance - apart,)
                    yield (-distance - apart,)
                    return
        yield ()

    def _other_rounds(self, equal: list[tuple[Atom, Poly]]) -> Iterator[_Case]:
        """The ways in which one access of two blocks that are alike is of different rounds."""
        for loop, relation in self._both[0][0].reach.rounds:
            if relation in (FREE, LATER):
                mine, other = (self._atom(self.values.loops[loop].variable, who) for who in (0, 1))
                yield _Case((other - mine - 1,), tuple(equal))

    def _refuted(
        self, extra: list[Poly], equal: Sequence[tuple[Atom, Poly]], depth: int, budget: list[int]
    ) -> bool:
        if budget[0] <= 0:
            return False
        budget[0] -= 1
        replaced = dict(equal)

        def put(poly: Poly) -> Poly:
            return _substituted(poly, replaced) if replaced else poly

        axes_a = [(put(f), put(n)) for f, n in self.a.axes]
        axes_b = [(put(f), put(n)) for f, n in self.b.axes]
        gaps = [first - other for (first, _), (other, _) in zip(axes_a, axes_b)]
        nonzero = {put(poly) for poly in (*self.a.nonzero, *self.b.nonzero)}
        goals: list[Poly] = []
        for gap, (_, mine), (_, theirs) in zip(gaps, axes_a, axes_b):
            at_points = mine.constant == theirs.constant == 1
            if self._never_meet(gap, mine, theirs) or (at_points and not nonzero.isdisjoint((gap, -gap))):
                return True
            goals += [gap - theirs, -gap - mine]
        if any((goal.constant or 0) >= 0 for goal in goals if goal.constant is not None):
            return True
        goals = [goal for goal in goals if goal.constant is None]
        # What orders the blocks decides most cases; bounds and guards are brought in only where it does not.
        order = self._prepared([put(poly) for poly in extra], gaps)
        nonneg = self.knowledge.nonneg
        if any(never_negative(goal, order, nonneg, QUICK) for goal in goals):
            return True
        if depth == 0 and self.guarded and self._impossible(extra, put):
            return True
        if (depth or self.guarded) and self._meet():
            budget[0] = 0
            return False
        pairs = [] if depth >= DEEPEST else [
            (x, y) for x, y in self._candidates(gaps) if x not in replaced and y not in replaced
        ]
        for x, y in pairs:
            one = Poly({(x,): 1}) + _lead(x, gaps)
            other = Poly({(y,): 1})
            if never_negative(one - other - 1, order, nonneg, QUICK) or never_negative(
                other - one - 1, order, nonneg, QUICK
            ):
                continue  # who is ahead is known
            ahead = [one - other - 1, *extra]
            behind = [other - one - 1, *extra]
            return (
                self._refuted(extra, [*_within(equal, y, one), (y, one)], depth + 1, budget)
                and self._refuted(ahead, equal, depth + 1, budget)
                and self._refuted(behind, equal, depth + 1, budget)
            )
        for lead, by in [] if depth >= DEEPEST else self._leads(gaps):
            if never_negative(lead - 1, order, nonneg, QUICK) or never_negative(-lead - 1, order, nonneg, QUICK):
                continue
            x, value_ = by
            return (
                self._refuted(extra, [*_within(equal, x, value_), (x, value_)], depth + 1, budget)
                and self._refuted([lead - 1, *extra], equal, depth + 1, budget)
                and self._refuted([-lead - 1, *extra], equal, depth + 1, budget)
            )
        for x in [] if depth >= DEEPEST else self._singles(gaps, pairs):
            one = Poly({(x,): 1})
            if x in replaced or never_negative(one - 1, order, nonneg, QUICK):
                continue
            return self._refuted(extra, [*_within(equal, x, Poly({})), (x, Poly({}))], depth + 1, budget) and (
                self._refuted([one - 1, *extra], equal, depth + 1, budget)
            )
        if self._meet():
            budget[0] = 0
            return False
        everything = [put(p) for p in (*extra, *self.a.guards, *self.b.guards, *self.bounds)]
        everything = [poly for poly in everything if self._tells(poly)]
        self._learn_signs(gaps)
        prepared = self._prepared(everything, gaps)
        if any(never_negative(goal, prepared, nonneg) for goal in goals):
            return True
        if self._thorough and any(follows(goal, prepared, nonneg) for goal in goals):
            return True
        return depth > 0 and self.guarded and self._impossible(extra, put)

    def _learn_signs(self, gaps: Sequence[Poly]) -> None:
        """Parameters that the bounds show never negative: whatever the case, the accesses happen only there."""
        for atom in {atom for gap in gaps for atom in gap.atoms if atom[0] == "param"}:
            if atom not in self.knowledge.signs:
                given = [*self.bounds, *(guard for _, side in self._both for guard in side.guards)]
                self.knowledge.signs[atom] = never_negative(Poly({(atom,): 1}), given, self.knowledge.nonneg)

    def _prepared(self, given: Sequence[Poly], gaps: Sequence[Poly]) -> list[Poly]:
        atoms = {atom for poly in (*given, *gaps) for atom in poly.atoms}
        everything = [*self.knowledge.facts(atoms, given, None), *given]
        tight = (tightened(one, self.knowledge.divisor_of_atom) for one in everything)
        return list({frozenset(one.terms.items()): one for one in tight}.values())

    def _never_meet(self, gap: Poly, mine: Poly, theirs: Poly) -> bool:
        """The gcd test: the gap is some number modulo `g`, and no meeting gap is."""
        a, b = mine.constant, theirs.constant
        if a is None or b is None:
            return False
        constant = gap.terms.get((), 0)
        g = (gap - constant).divisor(self.knowledge.divisor_of_atom)
        if g <= 1:
            return False
        # They meet where -a < gap < b; the gaps that can be are constant + g * n.
        nearest = constant % g
        return nearest >= b and nearest - g <= -a

    def _impossible(self, extra: Sequence[Poly], put: Callable[[Poly], Poly]) -> bool:
        """Whether the conditions of the two contradict one another, or the order of the blocks."""
        nonneg = self.knowledge.nonneg
        guards = [put(poly) for poly in (*self.a.guards, *self.b.guards, *extra)]
        nonzero = [put(poly) for poly in (*self.a.nonzero, *self.b.nonzero)]
        if any(poly.constant == 0 for poly in nonzero):
            return True
        if any((poly.constant or 0) < 0 for poly in guards if poly.constant is not None):
            return True
        bounds = [poly for poly in map(put, self.bounds) if self._tells(poly)]
        given = self._prepared([*guards, *bounds], nonzero)
        for poly in nonzero:
            up, down = never_negative(poly, given, nonneg), never_negative(-poly, given, nonneg)
            if up and down:
                return True
            if up or down:
                stronger = poly - 1 if up else -poly - 1
                guards.append(stronger)
                given.append(stronger)
        seen: set[object] = set()
        for guard in guards:
            if guard.key not in seen and guard.constant is None:
                seen.add(guard.key)
                others = [one for one in given if one.terms != guard.terms]
                if never_negative(-guard - 1, others, nonneg, 32):
                    return True
        return False

    def _candidates(self, gaps: Sequence[Poly]) -> list[tuple[Atom, Atom]]:
        """Pairs of atoms, one of each block, that weigh the same in a gap: who is ahead decides it."""
        found: dict[tuple[Atom, Atom], int] = {}
        for gap in gaps:
            mine = [x for x in gap.atoms if self._whose(x) == 0]
            theirs = [y for y in gap.atoms if self._whose(y) == 1]
            for x in mine:
                if not gap.is_linear_in(x):
                    continue
                weight = gap.coefficient(x)
                for y in theirs:
                    if gap.is_linear_in(y) and weight == -gap.coefficient(y):
                        rank = 0 if x[0] == "div" else 1 if x[0] == "round" else 2
                        found.setdefault((x, y), rank)
        # Quotients hide in the atoms of other quotients: those of the gap's own atoms come first.
        inner: dict[tuple[Atom, Atom], int] = {}
        for x, y in found:
            if x[0] == "div" and y[0] == "div":
                a, b = poly_of_key(x[1]), poly_of_key(y[1])
                gap = a - b
                for u in gap.atoms:
                    for v in gap.atoms:
                        if self._whose(u) == 0 and self._whose(v) == 1 and gap.coefficient(u) == -gap.coefficient(v):
                            inner.setdefault((u, v), 3)
        return sorted({**inner, **found}, key=lambda pair: ({**inner, **found}[pair], repr(pair)))

    def _leads(self, gaps: Sequence[Poly]) -> Iterator[tuple[Poly, tuple[Atom, Poly]]]:
        """Rounds of both that weigh unlike numbers of one thing (`2 * r - s` grids): who is ahead decides it.

        With each the round that is what the others make it where nobody is.
        """
        for gap in gaps:
            weighed: dict[Monomial, dict[Atom, int]] = {}
            for monomial, c in gap.terms.items():
                rounds = [atom for atom in monomial if atom[0] in ("round", "div")]
                if len(rounds) == 1 and len(monomial) > 1:
                    rest = tuple(atom for atom in monomial if atom != rounds[0])
                    weighed.setdefault(rest, {})[rounds[0]] = c
            for rest, weights in weighed.items():
                whole = gcd(*weights.values())
                alone = gap.terms.get(rest, 0)
                if len(weights) < 2 or alone % whole:
                    continue
                lead = Poly({(atom,): c // whole for atom, c in weights.items()}) + alone // whole
                for atom, c in weights.items():
                    if abs(c) == whole and self._whose(atom) is not None:
                        yield lead, (atom, Poly({(atom,): 1}) - lead * (c // whole))
                        break

    def _singles(self, gaps: Sequence[Poly], pairs: Sequence[tuple[Atom, Atom]]) -> list[Atom]:
        """Rounds and quotients of one block that nothing of the other weighs against: 0 or more decides."""
        paired = {atom for pair in pairs for atom in pair}
        found = {
            atom
            for gap in gaps
            for atom in gap.atoms
            if atom[0] in ("round", "div")
            and atom not in paired
            and self._whose(atom) is not None
            and self.knowledge.nonneg(atom)
        }
        return sorted(found, key=repr)

    def _whose(self, atom: Atom) -> int | None:
        """The block that an atom belongs to; None for what both share."""
        known = self.own.get(atom)
        if known is not None:
            return known[1]
        if atom[0] not in NESTED:
            return None
        found = {self._whose(inner) for key in atom[1:] for inner in poly_of_key(key).atoms} - {None}
        return max((who for who in found if who is not None), default=None)


@value
class _Case:
    given: tuple[Poly, ...]
    equal: tuple[tuple[Atom, Poly], ...]


def _lead(atom: Atom, gaps: Sequence[Poly]) -> int:
    """By how much an atom is ahead where a gap is 0: `w * (x - y + lead)`, `w` being more than a number."""
    for gap in gaps:
        weight = gap.coefficient(atom)
        if len(weight.terms) == 1:
            ((monomial, c),) = weight.terms.items()
            rest = gap.terms.get(monomial, 0)
            if monomial and rest and rest % c == 0:
                return rest // c
    return 0


def _within(equal: Sequence[tuple[Atom, Poly]], atom: Atom, by: Poly) -> list[tuple[Atom, Poly]]:
    return [(name, _substituted(poly, {atom: by})) for name, poly in equal]


def _substituted(poly: Poly, replaced: dict[Atom, Poly]) -> Poly:
    """With atoms replaced, also inside quotients."""

    def new(atom: Atom) -> Poly | None:
        if atom in replaced:
            return replaced[atom]
        if atom[0] in NESTED:
            a, b = poly_of_key(atom[1]), poly_of_key(atom[2])
            c, d = _substituted(a, replaced), _substituted(b, replaced)
            if a.terms != c.terms or b.terms != d.terms:
                renamed: Atom = (atom[0], c.key, d.key)
                return replaced.get(renamed, Poly({(renamed,): 1}))
        return None

    return poly.substitute(new)


__all__ = ["Pair", "Side"]

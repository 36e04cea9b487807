"""Where a block can be between two barriers: from a place, everything it can reach without passing a barrier.

Blocks go through barriers together, so in one phase they agree on the round of every loop that the phase's first
barrier stands in. `Reach` says, for each loop around a statement, how its round relates to that one: the same,
the next (the phase wraps around the loop), later, the first (the phase entered the loop), or any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from phobos.semantics import ir
from phobos.semantics.conditions import Condition, Truth, consequences, key_of, negation, opaques, polys
from phobos.semantics.knowledge import ROOT
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.values import Values, blocks_of, values_of
from phobos.value import value

SAME, NEXT, LATER, FIRST, FREE = "same", "next", "later", "first", "free"
Loop = ir.For | ir.While
Way = tuple[Poly | Condition, ...]


@value
class Reach:
    """One way to be at a statement in a phase.

    `rounds` relates the loops around the statement, outermost first, to the place where the phase begins.
    `given` are polynomials never negative on this way: it passes a loop that has no rounds, or leaves one at the
    end of the round in which the phase began (the atom ("at", i) is that round of loop i). `conditions` hold on it:
    it went past a branch whose other arm has a barrier.
    """

    rounds: tuple[tuple[Loop, str], ...]
    way: Way
    _key: tuple[object, ...] | None = None  # once somebody asked

    @property
    def given(self) -> tuple[Poly, ...]:
        found: list[Poly] = []
        for step in self.way:
            found.extend((step,) if isinstance(step, Poly) else consequences(step))
        return tuple(found)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(step for step in self.way if not isinstance(step, Poly))

    @property
    def wraps(self) -> bool:
        """Whether the way goes around a loop that the phase began in."""
        return any(relation in (NEXT, LATER) for _, relation in self.rounds)

    @property
    def key(self) -> tuple[object, ...]:
        if self._key is None:
            key = tuple([(id(loop), relation) for loop, relation in self.rounds]), _key(self.way)
            object.__setattr__(self, "_key", key)
            return key
        return self._key

    @property
    def by_loop(self) -> dict[int, str]:
        """The round of each loop that it is, by the identity of the loop."""
        return {id(loop): relation for loop, relation in self.rounds}


def _key(way: Way) -> tuple[object, ...]:
    return tuple(map(id, way)) if way else ()  # equal steps of one program are one object: `_Walk.longer`


Start = ir.Statement | None
Found = dict[ir.Statement, tuple[Reach, ...]]


@value
class Stretch:
    """What follows a place up to the next barriers: how it is left, on which ways, and what is come to meanwhile.

    `parts` are what is come to, in order; those who share a part share what was found of it. `numbers` has the bit of
    each statement that is come to, `ends` are the barriers, or the end of the kernel (None), that it runs into.
    """

    exits: frozenset[str]
    ways: tuple[Reach, ...]
    parts: tuple[Found | Stretch, ...]
    numbers: int
    ends: tuple[ir.Barrier | None, ...]
    _found: Found | None = None  # once somebody asked

    @property
    def found(self) -> Found:
        """Every statement that is come to, with the ways to be there."""
        if self._found is None:
            found: Found = {}
            for part in self.parts:
                _join(found, part if isinstance(part, dict) else part.found)
            object.__setattr__(self, "_found", found)
            return found
        return self._found


def _join(found: Found, more: Found) -> None:
    if found.keys().isdisjoint(more):
        found.update(more)
        return
    both: Found = {}
    joined: dict[tuple[int, int], tuple[Reach, ...]] = {}  # most statements of a stretch are come to alike
    for statement in found.keys() & more.keys():
        known, ways = found[statement], more[statement]
        key = id(known), id(ways)
        if key not in joined:
            joined[key] = known if known is ways else tuple(dict.fromkeys((*known, *ways)))
        both[statement] = joined[key]
    found.update(more)
    found.update(both)


@fact
def _steps_of(program: Program) -> dict[object, Poly | Condition]:
    """The steps of all ways by what they say: ways through one program are told apart by the objects in them."""
    return {}


class Flow:
    """Reachability without barriers, for one program. `without` is a barrier taken to be absent."""

    def __init__(self, program: Program, without: ir.Barrier | None = None) -> None:
        self.program = program
        self.values: Values = values_of(program)
        self.without = without
        self.steps = _steps_of(program)
        self.parents: dict[ir.Statement, tuple[ir.Block, int, ir.Statement | None]] = {}
        self.barriers: list[ir.Barrier] = []
        self.loops: dict[ir.Statement, tuple[Loop, ...]] = {}
        self._waiting: set[ir.Statement] = set()  # those with a barrier inside
        self._bits: dict[ir.Statement, int] = {}
        self._stretches: dict[Start, Stretch] = {}
        self._starts: tuple[Start, ...] | None = None
        self._ways: dict[ir.Statement, dict[Start, tuple[Reach, ...]]] | None = None
        self._index(program.body, None, ())
        self._walk = _Walk(self)

    def _index(self, block: ir.Block, owner: ir.Statement | None, loops: tuple[Loop, ...]) -> bool:
        holds = False
        for position, statement in enumerate(block.statements):
            self.parents[statement] = (block, position, owner)
            self.loops[statement] = loops
            self._bits[statement] = 1 << len(self._bits)
            if isinstance(statement, ir.Barrier):
                if statement is not self.without:
                    self.barriers.append(statement)
                    holds = True
                continue
            inner = (*loops, statement) if isinstance(statement, (ir.For, ir.While)) else loops
            inside = False
            for child in blocks_of(statement):
                inside = self._index(child, statement, inner) or inside
            if inside:
                self._waiting.add(statement)
                holds = True
        return holds

    @property
    def starts(self) -> tuple[Start, ...]:
        """Where phases begin: the start of the kernel and every barrier that is reachable."""
        if self._starts is None:
            self._starts = (None, *(b for b in self.barriers if b not in self.values.unreachable))
        return self._starts

    def holds_barrier(self, statement: ir.Statement) -> bool:
        """Whether a barrier stands inside a statement."""
        return statement in self._waiting

    def reached(self, start: Start) -> Found:
        """Every statement that can follow `start` (None: the start of the kernel) before the next barrier."""
        return self._stretch(start).found

    def after(self, start: Start) -> int:
        """The same as a set of `bit`s: of many starts, this is had for much less."""
        return self._stretch(start).numbers

    def bit(self, statement: ir.Statement) -> int:
        """A number with one bit, a statement's own; later in the text is higher."""
        return self._bits[statement]

    def ends(self, start: Start) -> tuple[ir.Barrier | None, ...]:
        """The barriers, or the end of the kernel (None), that a phase can run into."""
        return self._stretch(start).ends

    def _stretch(self, start: Start) -> Stretch:
        if start not in self._stretches:
            begins_phase = start is None or isinstance(start, ir.Barrier)
            # The last first: what follows it is part of what follows those before.
            for one in (*reversed(self.starts), start) if begins_phase else (start,):
                if one not in self._stretches:
                    self._stretches[one] = self._walk.from_start(one)
        return self._stretches[start]

    def meet(self, a: ir.Statement, b: ir.Statement) -> bool:
        """Whether two statements can be executed in one phase."""
        return not self.ways(a).keys().isdisjoint(self.ways(b))

    def ways(self, statement: ir.Statement) -> Mapping[Start, tuple[Reach, ...]]:
        """The ways to be at a statement, by the start of the phase, in the order of `starts`.

        A way is the same object wherever it is told of, so that two statements with equal items are come to alike.
        """
        if self._ways is None:
            self._ways = {}
            for start in self.starts:
                for reached, ways in self.reached(start).items():
                    self._ways.setdefault(reached, {})[start] = ways
        return self._ways.get(statement, {})


MOST_FRESH = 4  # loops with barriers, one in the other, of which the first round is told from the others
MOST_STEPS = 32  # that a way holds; those that it took first are forgotten
NESTS = frozenset((ir.If, ir.For, ir.While, ir.Inline))
TURNS = frozenset((*NESTS, ir.Barrier, ir.Break, ir.Continue, ir.Leave))  # behind all others, the next one follows


class _Trail:
    """What a walk has come to so far."""

    def __init__(self) -> None:
        self.parts: list[Found | Stretch] = []
        self.numbers = 0
        self.ends: dict[ir.Barrier | None, None] = {}
        self._run: Found | None = None  # the last part, while statements follow one another

    def note(self, statement: ir.Statement, ways: tuple[Reach, ...], bit: int) -> None:
        if self._run is None or statement in self._run:
            self._run = {}
            self.parts.append(self._run)
        self._run[statement] = ways
        self.numbers |= bit

    def add(self, stretch: Stretch) -> None:
        if stretch.numbers:
            self.parts.append(stretch)
            self.numbers |= stretch.numbers
            self._run = None
        if stretch.ends:
            self.ends.update(dict.fromkeys(stretch.ends))

    def as_stretch(self, exits: frozenset[str], ways: tuple[Reach, ...]) -> Stretch:
        return Stretch(exits, ways, tuple(self.parts), self.numbers, tuple(self.ends))


class _Walk:
    """The walks through one program, a statement on one way once: walks that come to one place go on together."""

    def __init__(self, flow: Flow) -> None:
        self.body = flow.program.body
        self.values = flow.values
        self.without = flow.without
        self.steps = flow.steps
        self.parents = flow.parents
        self.loops = flow.loops
        self.bits = flow._bits
        self.waiting = flow._waiting
        self._trail = _Trail()
        self._known: dict[tuple[int, int, int], Stretch] = {}  # by block, position and way
        self._begun: dict[int, set[int]] = {}  # the positions in each block of which something is known
        self._ways: dict[object, tuple[Reach]] = {}  # each once
        self._behind_branch: dict[tuple[ir.If, bool], Way] = {}

    def from_start(self, start: Start) -> Stretch:
        """All that follows a start."""
        self._trail = _Trail()
        exits = self._kernel() if start is None else self._behind_start(start)
        if exits & {"fall", "kernel"}:
            self._trail.ends[None] = None
        return self._trail.as_stretch(exits, ())

    def _kernel(self) -> frozenset[str]:
        return self._block(self.body, 0, self._way((), ()))[0]

    def _behind_start(self, start: ir.Statement) -> frozenset[str]:
        rounds: tuple[tuple[Loop, str], ...] = tuple((loop, SAME) for loop in self.loops[start])
        block, position, owner = self.parents[start]
        given: Way = ()  # what holds however the block of `owner` is left
        exits, ways = self._block(block, position + 1, self._way(rounds, given))
        while owner is not None:
            if isinstance(owner, (ir.For, ir.While)):
                before_body = isinstance(owner, ir.While) and block is owner.prelude and "fall" in exits
                if before_body:  # whether there is a round is decided next
                    body, ways = self._through(owner.body, ways)
                    exits = exits - {"fall"} | body
                rounds = rounds[:-1]
                around = exits & {"fall", "continue"}
                before = [given] if "continue" in exits else self._carried(ways)
                steps = [given]
                if around:
                    again = self._rounds(owner, (*rounds, (owner, NEXT)), before)
                    if again & {"fall", "continue"}:
                        again = again | self._round(owner, self._way((*rounds, (owner, LATER)), given))
                    elif "break" not in exits | again and not before_body:
                        last = self._was_last(owner)
                        given = self.longer(given, *last)
                        steps = [self.longer(way, *last) for way in before]
                    exits = exits | again
                exits = self._behind(exits | {"fall"} if before_body else exits)
                ways = tuple([self._way(rounds, way) for way in steps])
            elif isinstance(owner, ir.Inline):
                ways = (self._way(rounds, given),) if "leave" in exits else ways
                exits = self._returned(exits)
            block, position, above = self.parents[owner]
            if "fall" in exits:
                out, ways = self._through(block, ways, position + 1)
                exits = exits - {"fall"} | out
            owner = above
        return exits

    def _through(
        self, block: ir.Block, before: tuple[Reach, ...], position: int = 0
    ) -> tuple[frozenset[str], tuple[Reach, ...]]:
        """What `_block` says of all the ways to a position together."""
        exits: frozenset[str] = frozenset()
        ways: list[Reach] = []
        for way in before:
            out, after = self._block(block, position, way)
            exits, ways = exits | out, [*ways, *after]
        return exits, self._distinct(ways)

    def _rounds(self, statement: Loop, rounds: tuple[tuple[Loop, str], ...], ways: list[Way]) -> frozenset[str]:
        return frozenset().union(*(self._round(statement, self._way(rounds, way)) for way in ways))

    def _carried(self, ways: tuple[Reach, ...]) -> list[Way]:
        """What still holds in a later round: the rounds that are named were those in which the phase began."""
        knowledge = self.values.knowledge
        kept: list[Reach] = []
        for one in ways:
            steps = [_as_begun(step) if isinstance(step, Poly) else step for step in one.way]
            steps = [s for s in steps if not isinstance(s, Poly) or knowledge.home(s) == ROOT]
            kept.append(self._way(one.rounds, self.longer((), *steps)))
        return [one.way for one in self._distinct(kept)]

    def _was_last(self, statement: Loop) -> tuple[Poly, ...]:
        """What holds where a loop is left at the end of the round in which the phase began."""
        loop = self.values.loops.get(statement)
        if not isinstance(statement, ir.For) or loop is None or loop.value is None or loop.hi is None:
            return ()
        assert loop.step is not None
        here = _as_begun(loop.value + loop.step - loop.hi)
        return () if here.mentions("round") else (here,)

    def longer(self, way: Way, *steps: Poly | Condition) -> Way:
        """A way with further steps."""
        known = self.steps
        same = [known.setdefault(step.key if isinstance(step, Poly) else key_of(step), step) for step in steps]
        return (*way, *same)[-MOST_STEPS:]

    def _way(self, rounds: tuple[tuple[Loop, str], ...], way: Way) -> Reach:
        """The one object for a way to be somewhere."""
        return self._alone(Reach(rounds, way))[0]

    def _alone(self, way: Reach) -> tuple[Reach]:
        """A way as all the ways to a place, one object too."""
        return self._ways.setdefault(way.key, (way,))

    @staticmethod
    def _behind(exits: frozenset[str]) -> frozenset[str]:
        """How a loop is left, given how its rounds end."""
        leaves = exits & {"leave", "kernel"}
        return leaves | {"fall"} if exits & {"fall", "continue", "break"} else leaves

    @staticmethod
    def _returned(exits: frozenset[str]) -> frozenset[str]:
        rest = exits - {"leave"}
        return rest | {"fall"} if "leave" in exits else rest

    def _block(self, block: ir.Block, position: int, at: Reach) -> tuple[frozenset[str], tuple[Reach, ...]]:
        """Walk statements from a position: how control can leave before a barrier, and the ways to the end."""
        key = (id(block), position, id(at))
        stretch = self._known.get(key)
        if stretch is None:
            before, self._trail = self._trail, _Trail()
            exits, ways = self._statements(block, position, at)
            stretch = self._trail.as_stretch(exits, ways)
            self._trail = before
            self._known[key] = stretch
            self._begun.setdefault(id(block), set()).add(position)
        self._trail.add(stretch)
        return stretch.exits, stretch.ways

    def _statements(self, block: ir.Block, position: int, at: Reach) -> tuple[frozenset[str], tuple[Reach, ...]]:
        trail, bits = self._trail, self.bits
        dead, begun = self.values.unreachable, self._begun.get(id(block), ())
        exits: set[str] = set()
        ways: tuple[Reach, ...] = (at,)
        alone = self._alone(at)
        for index in range(position, len(block.statements)):
            if index in begun and index > position and len(ways) == 1:
                known = (id(block), index, id(ways[0])) in self._known
                if known or len(ways[0].way) == MOST_STEPS:  # what others forgot as well leads them to this way, too
                    out, ways = self._block(block, index, ways[0])
                    return out | exits, ways
            statement = block.statements[index]
            if type(statement) not in TURNS and len(ways) == 1 and statement not in dead:
                trail.note(statement, alone, bits[statement])
                continue
            after: list[Reach] = []
            for way in ways:
                out, passed = self._statement(statement, way)
                exits |= out - {"fall"}
                if "fall" in out:
                    after.extend(passed)
            ways = self._distinct(after)
            if not ways:
                return frozenset(exits), ways
            alone = self._alone(ways[0])
        return frozenset(exits | {"fall"}), ways

    def _statement(self, statement: ir.Statement, at: Reach) -> tuple[frozenset[str], tuple[Reach, ...]]:
        """How control leaves a statement, and what holds on each way that falls through."""
        if statement in self.values.unreachable:
            return frozenset(), ()
        self._trail.note(statement, self._alone(at), self.bits[statement])
        match statement:
            case ir.Barrier() if statement is not self.without:
                self._trail.ends[statement] = None
                return frozenset(), ()
            case ir.If(then=then, otherwise=otherwise):
                decided = self.values.condition(statement.condition)
                if isinstance(decided, Truth):
                    return self._block(then if decided.value else otherwise, 0, at)
                arms = (self._arm(then, at), self._arm(otherwise, at))
                falls = ["fall" in exits for exits in arms]
                if all(falls):
                    return arms[0] | arms[1], (at,)
                passed = self._way(at.rounds, (*at.way, *self._taken(statement, falls[0]))[-MOST_STEPS:])
                return arms[0] | arms[1], (passed,)
            case ir.For() | ir.While():
                return self._loop(statement, at)
            case ir.Inline(body=body):
                exits, ways = self._block(body, 0, at)
                return self._returned(exits), (at,) if "leave" in exits else ways
            case ir.Break():
                return frozenset({"break"}), ()
            case ir.Continue():
                return frozenset({"continue"}), ()
            case ir.Leave(leaves_kernel=leaves_kernel):
                return frozenset({"kernel" if leaves_kernel else "leave"}), ()
        return frozenset({"fall"}), (at,)

    def _taken(self, statement: ir.If, then: bool) -> Way:
        """What holds behind a branch of which only one arm leads there, if no round of a loop changes it."""
        key = statement, then
        if key not in self._behind_branch:
            self._behind_branch[key] = self.longer((), *self._decided(statement, then))
        return self._behind_branch[key]

    def _decided(self, statement: ir.If, then: bool) -> Way:
        condition = self.values.condition(statement.condition)
        if isinstance(condition, Truth):
            return ()
        fixed = all(self.values.knowledge.home(poly) == ROOT for poly in polys(condition))
        if not fixed or (opaques(condition) and self.loops[statement]):
            return ()
        return (condition if then else negation(condition),)

    def _arm(self, block: ir.Block, at: Reach) -> frozenset[str]:
        if not block.statements:
            return frozenset({"fall"})
        if block.statements[0] in self.values.unreachable:
            return frozenset()
        return self._block(block, 0, at)[0]

    def _loop(self, statement: Loop, at: Reach) -> tuple[frozenset[str], tuple[Reach, ...]]:
        told = sum(relation in (FIRST, FREE) and loop in self.waiting for loop, relation in at.rounds)
        free = self._way((*at.rounds, (statement, FREE)), at.way)
        if statement not in self.waiting or told >= MOST_FRESH:
            exits = self._round(statement, free)
            return self._behind(exits | {"fall"}), (at,)
        first = self._way((*at.rounds, (statement, FIRST)), at.way)
        exits = self._round(statement, first)
        around = bool(exits & {"fall", "continue"})
        if around:
            exits = exits | self._round(statement, free)
        out = self._behind(exits)
        passed = (at,) if "fall" in out else ()
        skipped = self._skips(statement, first, at)
        if not around and skipped is not None:
            out = out | {"fall"}
            passed = (*passed, skipped)
        return out, passed

    def _skips(self, statement: Loop, first: Reach, at: Reach) -> Reach | None:
        """The way past a loop that has no round; None where it always has one, or waits before that is decided."""
        if isinstance(statement, ir.While) and "fall" not in self._block(statement.prelude, 0, first)[0]:
            return None
        loop = self.values.loops.get(statement)
        if loop is None or loop.hi is None or loop.lo is None:
            return at
        empty = loop.lo - loop.hi
        constant = empty.constant
        if constant is not None:
            return at if constant >= 0 else None
        if self.values.holds(-empty - 1, self.values.context(statement)):
            return None
        return self._way(at.rounds, self.longer(at.way, empty))

    def _round(self, statement: Loop, at: Reach) -> frozenset[str]:
        if isinstance(statement, ir.While):
            before, _ = self._block(statement.prelude, 0, at)
            if "fall" not in before:
                return before
            return (before - {"fall"}) | self._block(statement.body, 0, at)[0]
        return self._block(statement.body, 0, at)[0]

    def _distinct(self, ways: Iterable[Reach]) -> tuple[Reach, ...]:
        """Each way once; a way on which nothing special holds covers the others."""
        kept = tuple(dict.fromkeys(ways))
        plain = next((one for one in kept if not one.way), None)
        return kept[:4] if plain is None else (plain,)


def _as_begun(poly: Poly) -> Poly:
    """A value in the round in which the phase began, said so that it can stand in any later one."""
    return poly.substitute(lambda atom: Poly.atom("at", atom[1]) if atom[0] == "round" else None)


@fact
def flow_of(program: Program) -> Flow:
    """The flow with all barriers in place."""
    return Flow(program)


__all__ = ["FIRST", "FREE", "LATER", "NEXT", "SAME", "Flow", "Reach", "Start", "flow_of"]

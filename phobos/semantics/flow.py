"""Where a block can be between two barriers: from a place, everything it can reach without passing a barrier.

Blocks go through barriers together, so in one phase they agree on the round of every loop that the phase's first
barrier stands in. `Reach` says, for each loop around a statement, how its round relates to that one: the same,
the next (the phase wraps around the loop), later, the first (the phase entered the loop), or any.
"""

from __future__ import annotations

from collections.abc import Iterable

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


def _key(way: Way) -> tuple[object, ...]:
    return tuple(map(id, way)) if way else ()  # equal steps of one program are one object: `_Walk.longer`


Start = ir.Statement | None


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
        self._holds_barrier: dict[ir.Statement, bool] = {}
        self._reached: dict[Start, dict[ir.Statement, tuple[Reach, ...]]] = {}
        self._starts: tuple[Start, ...] | None = None
        self._phases: dict[ir.Statement, frozenset[int]] | None = None
        self._ends: dict[Start, tuple[ir.Barrier | None, ...]] = {}
        self._index(program.body, None, ())

    def _index(self, block: ir.Block, owner: ir.Statement | None, loops: tuple[Loop, ...]) -> bool:
        holds = False
        for position, statement in enumerate(block.statements):
            self.parents[statement] = (block, position, owner)
            self.loops[statement] = loops
            if isinstance(statement, ir.Barrier):
                if statement is not self.without:
                    self.barriers.append(statement)
                    holds = True
                continue
            inner = (*loops, statement) if isinstance(statement, (ir.For, ir.While)) else loops
            inside = False
            for child in blocks_of(statement):
                inside = self._index(child, statement, inner) or inside
            if blocks_of(statement):
                self._holds_barrier[statement] = inside
                holds = holds or inside
        return holds

    @property
    def starts(self) -> tuple[Start, ...]:
        """Where phases begin: the start of the kernel and every barrier that is reachable."""
        if self._starts is None:
            self._starts = (None, *(b for b in self.barriers if b not in self.values.unreachable))
        return self._starts

    def holds_barrier(self, statement: ir.Statement) -> bool:
        """Whether a barrier stands inside a statement."""
        return self._holds_barrier.get(statement, False)

    def reached(self, start: Start) -> dict[ir.Statement, tuple[Reach, ...]]:
        """Every statement that can follow `start` (None: the start of the kernel) before the next barrier."""
        known = self._reached.get(start)
        if known is None:
            walk = _Walk(self)
            walk.from_start(start)
            known = {statement: tuple(ways.values()) for statement, ways in walk.found.items()}
            self._reached[start] = known
            self._ends[start] = tuple(walk.ends)
        return known

    def ends(self, start: Start) -> tuple[ir.Barrier | None, ...]:
        """The barriers, or the end of the kernel (None), that a phase can run into."""
        self.reached(start)
        return self._ends[start]

    def meet(self, a: ir.Statement, b: ir.Statement) -> bool:
        """Whether two statements can be executed in one phase."""
        return not self.phases_with(a).isdisjoint(self.phases_with(b))

    def phases_with(self, statement: ir.Statement) -> frozenset[int]:
        """The phases that a statement can be in, by the index of their start in `starts`."""
        if self._phases is None:
            found: dict[ir.Statement, list[int]] = {}
            for index, start in enumerate(self.starts):
                for reached in self.reached(start):
                    found.setdefault(reached, []).append(index)
            self._phases = {one: frozenset(indices) for one, indices in found.items()}
        return self._phases.get(statement, frozenset())


MOST_FRESH = 4  # loops with barriers, one in the other, of which the first round is told from the others
MOST_STEPS = 32  # that a way holds; those that it took first are forgotten


class _Walk:
    """One walk from one start."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.found: dict[ir.Statement, dict[object, Reach]] = {}
        self.ends: dict[ir.Barrier | None, None] = {}
        self._done: dict[object, tuple[frozenset[str], list[Way]]] = {}

    def from_start(self, start: Start) -> None:
        flow = self.flow
        if start is None:
            self._finish(self._block(flow.program.body, 0, (), ())[0])
            return
        rounds: tuple[tuple[Loop, str], ...] = tuple((loop, SAME) for loop in flow.loops[start])
        block, position, owner = flow.parents[start]
        given: Way = ()  # what holds however the block of `owner` is left
        exits, ways = self._block(block, position + 1, rounds, given)
        while owner is not None:
            if isinstance(owner, (ir.For, ir.While)):
                rounds = rounds[:-1]
                around = exits & {"fall", "continue"}
                before = [given] if "continue" in exits else self._carried(ways)
                ways = [given]
                if around:
                    again = self._rounds(owner, (*rounds, (owner, NEXT)), before)
                    if again & {"fall", "continue"}:
                        again = again | self._round(owner, (*rounds, (owner, LATER)), given)
                    elif "break" not in exits | again:
                        last = self._was_last(owner)
                        given = self.longer(given, *last)
                        ways = [self.longer(way, *last) for way in before]
                    exits = exits | again
                exits = self._behind(exits)
            elif isinstance(owner, ir.Inline):
                ways = [given] if "leave" in exits else ways
                exits = self._returned(exits)
            if "fall" in exits:
                block, position, _ = flow.parents[owner]
                exits, before, ways = exits - {"fall"}, ways, []
                for way in before:
                    out, after = self._block(block, position + 1, rounds, way)
                    exits, ways = exits | out, [*ways, *after]
                ways = _distinct(ways)
            owner = flow.parents[owner][2]
        self._finish(exits)

    def _rounds(self, statement: Loop, rounds: tuple[tuple[Loop, str], ...], ways: list[Way]) -> frozenset[str]:
        return frozenset().union(*(self._round(statement, rounds, way) for way in ways))

    def _carried(self, ways: list[Way]) -> list[Way]:
        """What still holds in a later round: the rounds that are named were those in which the phase began."""
        knowledge = self.flow.values.knowledge
        kept: list[Way] = []
        for way in ways:
            steps = [_as_begun(step) if isinstance(step, Poly) else step for step in way]
            kept.append(self.longer((), *(s for s in steps if not isinstance(s, Poly) or knowledge.home(s) == ROOT)))
        return _distinct(kept)

    def _was_last(self, statement: Loop) -> tuple[Poly, ...]:
        """What holds where a loop is left at the end of the round in which the phase began."""
        loop = self.flow.values.loops.get(statement)
        if not isinstance(statement, ir.For) or loop is None or loop.value is None or loop.hi is None:
            return ()
        assert loop.step is not None
        here = _as_begun(loop.value + loop.step - loop.hi)
        return () if here.mentions("round") else (here,)

    def longer(self, way: Way, *steps: Poly | Condition) -> Way:
        """A way with further steps."""
        known = self.flow.steps
        same = [known.setdefault(step.key if isinstance(step, Poly) else key_of(step), step) for step in steps]
        return (*way, *same)[-MOST_STEPS:]

    def _finish(self, exits: frozenset[str]) -> None:
        if exits & {"fall", "kernel"}:
            self.ends[None] = None

    @staticmethod
    def _behind(exits: frozenset[str]) -> frozenset[str]:
        """How a loop is left, given how its rounds end."""
        leaves = exits & {"leave", "kernel"}
        return leaves | {"fall"} if exits & {"fall", "continue", "break"} else leaves

    @staticmethod
    def _returned(exits: frozenset[str]) -> frozenset[str]:
        rest = exits - {"leave"}
        return rest | {"fall"} if "leave" in exits else rest

    def _block(
        self, block: ir.Block, position: int, rounds: tuple[tuple[Loop, str], ...], given: Way
    ) -> tuple[frozenset[str], list[Way]]:
        """Walk statements from a position: how control can leave before a barrier, and the ways to the end."""
        key = (id(block), position, tuple([(id(loop), r) for loop, r in rounds]), _key(given))
        known = self._done.get(key)
        if known is not None:
            return known
        self._done[key] = frozenset(), []
        exits: set[str] = set()
        alive = True
        ways: list[Way] = [given]
        for statement in block.statements[position:]:
            after: list[Way] = []
            for way in ways:
                out, passed = self._statement(statement, rounds, way)
                exits |= out - {"fall"}
                if "fall" in out:
                    after.extend(passed)
            ways = _distinct(after)
            if not ways:
                alive = False
                break
        result = frozenset(exits | {"fall"}) if alive else frozenset(exits)
        self._done[key] = result, ways
        return result, ways

    def _record(
        self, statement: ir.Statement, rounds: tuple[tuple[Loop, str], ...], given: Way
    ) -> None:
        reach = Reach(rounds, given)
        self.found.setdefault(statement, {}).setdefault(reach.key, reach)

    def _statement(
        self, statement: ir.Statement, rounds: tuple[tuple[Loop, str], ...], given: Way
    ) -> tuple[frozenset[str], list[Way]]:
        """How control leaves a statement, and what holds on each way that falls through."""
        if statement in self.flow.values.unreachable:
            return frozenset(), []
        self._record(statement, rounds, given)
        match statement:
            case ir.Barrier() if statement is not self.flow.without:
                self.ends[statement] = None
                return frozenset(), []
            case ir.If(then=then, otherwise=otherwise):
                decided = self.flow.values.condition(statement.condition)
                if isinstance(decided, Truth):
                    return self._block(then if decided.value else otherwise, 0, rounds, given)
                arms = (self._arm(then, rounds, given), self._arm(otherwise, rounds, given))
                falls = ["fall" in exits for exits in arms]
                if all(falls):
                    return arms[0] | arms[1], [given]
                return arms[0] | arms[1], [self.longer(given, *self._taken(statement, falls[0]))]
            case ir.For() | ir.While():
                return self._loop(statement, rounds, given)
            case ir.Inline(body=body):
                exits, ways = self._block(body, 0, rounds, given)
                return self._returned(exits), [given] if "leave" in exits else ways
            case ir.Break():
                return frozenset({"break"}), []
            case ir.Continue():
                return frozenset({"continue"}), []
            case ir.Leave(leaves_kernel=leaves_kernel):
                return frozenset({"kernel" if leaves_kernel else "leave"}), []
        return frozenset({"fall"}), [given]

    def _taken(self, statement: ir.If, then: bool) -> Way:
        """What holds behind a branch of which only one arm leads there, if no round of a loop changes it."""
        values = self.flow.values
        condition = values.condition(statement.condition)
        if isinstance(condition, Truth):
            return ()
        fixed = all(values.knowledge.home(poly) == ROOT for poly in polys(condition))
        if not fixed or (opaques(condition) and self.flow.loops[statement]):
            return ()
        return (condition if then else negation(condition),)

    def _arm(self, block: ir.Block, rounds: tuple[tuple[Loop, str], ...], given: Way) -> frozenset[str]:
        if block.statements and block.statements[0] in self.flow.values.unreachable:
            return frozenset()
        return self._block(block, 0, rounds, given)[0]

    def _loop(
        self, statement: Loop, rounds: tuple[tuple[Loop, str], ...], given: Way
    ) -> tuple[frozenset[str], list[Way]]:
        flow = self.flow
        told = sum(relation in (FIRST, FREE) and flow.holds_barrier(loop) for loop, relation in rounds)
        if not flow.holds_barrier(statement) or told >= MOST_FRESH:
            exits = self._round(statement, (*rounds, (statement, FREE)), given)
            return self._behind(exits | {"fall"}), [given]
        exits = self._round(statement, (*rounds, (statement, FIRST)), given)
        around = bool(exits & {"fall", "continue"})
        if around:
            exits = exits | self._round(statement, (*rounds, (statement, FREE)), given)
        out = self._behind(exits)
        passed = [given] if "fall" in out else []
        skipped = self._skips(statement, given)
        if not around and skipped is not None:
            out = out | {"fall"}
            passed = [*passed, skipped]
        return out, passed

    def _skips(self, statement: Loop, given: Way) -> Way | None:
        """What holds where a loop has no round; None where it always has one."""
        loop = self.flow.values.loops.get(statement)
        if loop is None or loop.hi is None or loop.lo is None:
            return given
        empty = loop.lo - loop.hi
        constant = empty.constant
        if constant is not None:
            return given if constant >= 0 else None
        if self.flow.values.holds(-empty - 1, self.flow.values.context(statement)):
            return None
        return self.longer(given, empty)

    def _round(
        self, statement: Loop, rounds: tuple[tuple[Loop, str], ...], given: Way
    ) -> frozenset[str]:
        if isinstance(statement, ir.While):
            before, _ = self._block(statement.prelude, 0, rounds, given)
            if "fall" not in before:
                return before
            return (before - {"fall"}) | self._block(statement.body, 0, rounds, given)[0]
        return self._block(statement.body, 0, rounds, given)[0]


def _as_begun(poly: Poly) -> Poly:
    """A value in the round in which the phase began, said so that it can stand in any later one."""
    return poly.substitute(lambda atom: Poly.atom("at", atom[1]) if atom[0] == "round" else None)


def _distinct(ways: Iterable[Way]) -> list[Way]:
    found: dict[object, Way] = {}
    for way in ways:
        found.setdefault(_key(way), way)
    kept = list(found.values())
    if any(not way for way in kept):
        return [()]  # a way on which nothing special holds covers the others
    return kept[:4]


@fact
def flow_of(program: Program) -> Flow:
    """The flow with all barriers in place."""
    return Flow(program)


__all__ = ["FIRST", "FREE", "LATER", "NEXT", "SAME", "Flow", "Reach", "Start", "flow_of"]

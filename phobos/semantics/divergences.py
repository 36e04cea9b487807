"""Barriers that not all blocks reach alike, and on what ground: numbers that part two blocks, data, or nothing found.

A decision whose condition index arithmetic settles parts nobody, whatever it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.conditions import All, AnyOf, Compare, Condition, Truth, negation, opaques, polys
from phobos.semantics.levels import Origin, Variation
from phobos.semantics.masks import sure_grid_facts
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program
from phobos.semantics.traces import parting_of, parts_at
from phobos.semantics.values import Context, statements_in, statements_of, values_of
from phobos.semantics.variation import Apart, condition_tells_apart, trips_tell_apart
from phobos.value import value


@value
class Divergence:
    """Why a barrier is not reached by all blocks alike.

    `kind`: "branch" (PH203), "exit" (PH204), "trip" (PH205), "arms" (PH215). `construct` is the keyword of the
    `if`/`for`/`while`, or the exit statement. `others` are the further barriers concerned ("arms"). `ground`: "witness"
    (index arithmetic parts the blocks of some launch), "data" (what is loaded, or an atomic's answer, may part them) or
    "none" (index arithmetic might, and no launch was found in which it does).
    """

    barrier: ir.Barrier
    kind: str
    construct: Span
    construct_calls: tuple[Span, ...]
    chain: tuple[Origin, ...]  # from the condition's identifier to the origin
    ground: str
    others: tuple[ir.Barrier, ...]

    @property
    def certain(self) -> bool:
        return self.ground == "witness"


@value
class Split:
    """A construct at which blocks part. `kind`: "branch", "trip" or "exit"."""

    kind: str
    statement: ir.Statement
    construct: Span
    calls: tuple[Span, ...]
    variation: Variation
    parting: ir.Statement  # the `if` or loop whose decision parts them


class Decisions:
    """What is to be said of the conditions and trips of a program by index arithmetic."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._values = values_of(program)
        self._limits = sure_grid_facts(program)
        self._settling: dict[ir.Statement, bool] = {}
        self._certain: dict[object, bool] = {}
        self._examples: dict[object, Apart | None] = {}

    def divergences(self, parted: Mapping[ir.Barrier, Sequence[Split]]) -> tuple[Divergence, ...]:
        """What stands at the barriers where blocks have parted, by the outermost split in force there."""
        found: list[Divergence] = []
        grouped: set[ir.Barrier] = set()
        order = [s for s in statements_in(self._program) if isinstance(s, ir.Barrier)]
        for barrier in order:
            splits = parted.get(barrier)
            if not splits or barrier in grouped:
                continue
            outermost = splits[0]
            ground = self._ground(splits, barrier)
            kind = outermost.kind
            others: tuple[ir.Barrier, ...] = ()
            if kind == "branch" and isinstance(outermost.statement, ir.If):
                arms = [
                    [s for s in statements_of(block) if isinstance(s, ir.Barrier) and s in parted]
                    for block in (outermost.statement.then, outermost.statement.otherwise)
                ]
                if all(arms):
                    kind = "arms"
                    others = tuple(b for arm in arms for b in arm if b is not barrier)
                    grouped.update(others)
            found.append(
                Divergence(
                    barrier, kind, outermost.construct, outermost.calls, outermost.variation.chain(), ground, others
                )
            )
        return tuple(found)

    def settled(self, statement: ir.Statement, condition: Condition) -> bool:
        """Whether what holds at an `if` or `while` decides its condition, for all blocks alike."""
        known = self._settling.get(statement)
        if known is None:
            known = self._settling[statement] = self._always(condition, self._inside(statement))
        return known

    def _ground(self, splits: Sequence[Split], barrier: ir.Barrier) -> str:
        """What the parting at a barrier rests on, as `Divergence` says."""
        by_index = [split for split in splits if split.variation.certain]
        told = [split for split in splits if self._is_certain(split, barrier)]
        if told or by_index:
            found = [self._examples[split.parting, barrier] for split in told]
            examples = [example for example in found if example is not None]
            if any(parts_at(self._program, example) for example in examples):
                return "witness"
            parting = parting_of(self._program)
            if barrier in parting.at or (examples and (parting.at or not parting.agreed)):
                return "witness"
        return "none" if len(by_index) == len(splits) else "data"

    def _is_certain(self, split: Split, barrier: ir.Barrier) -> bool:
        """Whether index arithmetic alone tells two blocks apart there: by numbers where the construct is arithmetic."""
        key = (split.parting, barrier)
        known = self._certain.get(key)
        if known is None:
            reached = self._values.context(barrier)
            self._examples[key] = self._example(split.parting, reached)
            known = self._examples[key] is not None or self._unsettled(split.parting, split.variation)
            self._certain[key] = known
        return known

    def _example(self, statement: ir.Statement, reached: Context) -> Apart | None:
        """Numbers at which a construct takes two blocks different ways."""
        if isinstance(statement, ir.For):
            loop = self._values.loops.get(statement)
            return (
                None if loop is None else trips_tell_apart(self._values, loop, self._values.context(statement), reached)
            )
        if isinstance(statement, (ir.If, ir.While)):
            condition = self._values.condition(statement.condition)
            return condition_tells_apart(self._values, condition, self._inside(statement), reached)
        return None

    def _unsettled(self, statement: ir.Statement, variation: Variation) -> bool:
        """Whether the block index has a part in a decision of which no numbers can tell."""
        if isinstance(statement, ir.For):
            loop = self._values.loops.get(statement)
            if loop is None or loop.lo is None or loop.hi is None or loop.step is None:
                return variation.certain
            return variation.certain and not all(map(self._is_arithmetic, (loop.lo, loop.hi, loop.step)))
        if isinstance(statement, (ir.If, ir.While)):
            return variation.certain and not self._is_plain(self._values.condition(statement.condition))
        return variation.certain

    def _is_plain(self, condition: Condition) -> bool:
        return not opaques(condition) and all(self._is_arithmetic(poly) for poly in polys(condition))

    def _inside(self, statement: ir.Statement) -> Context:
        context = self._values.context(statement)
        if isinstance(statement, ir.While):
            loop = self._values.loops.get(statement)
            if loop is not None:
                return Context(context, None, loop.index, None, statement, (), context.depth + 1)
        return context

    def _always(self, condition: Condition, context: Context) -> bool:
        """Whether what holds at the place decides the condition."""
        given = [*self._values.given(context), *self._limits]
        return self._follows(condition, given) or self._follows(negation(condition), given)

    def _follows(self, condition: Condition, given: list[Poly]) -> bool:
        match condition:
            case Truth(value=known):
                return known
            case Compare(op="ge", poly=poly):
                return self._values.knowledge.never_negative(poly, given)
            case Compare(op="ne", poly=poly):
                holds = self._values.knowledge.never_negative
                return holds(poly - 1, given) or holds(-poly - 1, given)
            case All(parts=parts):
                return all(self._follows(part, given) for part in parts)
            case AnyOf(parts=parts):
                return any(self._follows(part, given) for part in parts)
        return False

    def _is_arithmetic(self, poly: Poly) -> bool:
        return not any(poly.mentions(kind) for kind in ("var", "load", "unsigned", "atomic", "expr", "op", "wrap"))

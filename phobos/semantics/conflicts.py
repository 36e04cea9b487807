"""Which accesses of two blocks in one phase can meet in a cell.

Two footprints of two different blocks in one phase are disjoint (proved), meet (with a witness) or are unknown (a
reason): only the first is silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from phobos.semantics import ir
from phobos.semantics.apart import Proofs
from phobos.semantics.between import Between
from phobos.semantics.cells import Cells, conditions_of
from phobos.semantics.conditions import opaques, polys
from phobos.semantics.examples import examples_of
from phobos.semantics.flow import FREE, Flow, Reach, Start, flow_of
from phobos.semantics.footprints import Footprint, footprints_of
from phobos.semantics.grid import grid_of, has_one_axis
from phobos.semantics.groups import MOST_PAIRS, Group, Groups, pairs
from phobos.semantics.levels import Level
from phobos.semantics.masks import sure_grid_facts
from phobos.semantics.poly import Atom
from phobos.semantics.program import Program, fact
from phobos.semantics.rehearsed_launch import Touch
from phobos.semantics.turns import Turns, turns_of
from phobos.semantics.twoblocks import FEW_NODES, MOST_NODES
from phobos.semantics.uniformity import Uniformity, uniformity_of
from phobos.semantics.values import Values, statements_in, values_of
from phobos.semantics.walking import all_evaluated
from phobos.semantics.witness import Question, search
from phobos.value import value


@value
class Witness:
    """Two block ids, a grid, sizes, and the cell at which they meet."""

    blocks: tuple[int, int]
    grid: int
    sizes: tuple[tuple[str, int], ...]
    cell: tuple[int, ...]


@value
class Conflict:
    """Two accesses of two blocks in one phase that may touch one cell, one of them a plain store.

    `kind`: "race" (PH501), "same-cell" (PH502), "loop" (PH503), "atomic" (PH507), "unknown" (PH506), "alias" (PH505).
    `certain`: a witness exists, or it needs only index arithmetic.
    `begins` is where the phase begins in which they meet (None: the start of the kernel).
    `limit`: from this pair on none was compared, as `reason` says.
    `of` is the one of the two that `reason` is about, where it is about one.
    """

    kind: str
    first: Footprint
    second: Footprint
    certain: bool
    witness: Witness | None
    reason: str
    begins: ir.Barrier | None = None
    limit: bool = False
    of: Footprint | None = None


DATA = ("load", "unsigned", "atomic", "var", "expr", "op", "wrap", "thread")  # kinds of atoms that may hang on it
MOST_WAYS = 4000  # in which accesses fall into one phase: every loop around both multiplies them
MOST_ALIASES = 3000  # pairs of accesses to two tensors that are compared; of the other tensors none may overlap
MANY_CONDITIONS = 32  # around an access
MOST_CONFLICTS = 200  # of one kernel for which numbers are looked for: nobody reads more, and each is dear


@fact
def conflicts_of(program: Program) -> tuple[Conflict, ...]:
    """Every pair of accesses that is not proved apart, the gravest verdict of each pair once."""
    return meetings_of(program) + aliases_of(program)


@fact
def meetings_of(program: Program) -> tuple[Conflict, ...]:
    """The conflicts of accesses to one and the same tensor: no "alias"."""
    return tuple(_analysis_of(program).meetings())


@fact
def aliases_of(program: Program) -> tuple[Conflict, ...]:
    """The conflicts there would be if two tensors were one: each an "alias"."""
    return tuple(_analysis_of(program).aliases())


def conflicts_without(program: Program, barrier: ir.Barrier) -> tuple[Conflict, ...]:
    """The conflicts there would be if one barrier were not there: none more means that it is not needed."""
    analysis = _Conflicts(program, Flow(program, barrier))
    return (*analysis.meetings(), *analysis.aliases())


def separates(program: Program, barrier: ir.Barrier) -> bool:
    """Whether accesses that only this barrier keeps apart in time may meet in a cell. Looks for no example.

    Two tensors are taken not to overlap. What is not proved apart counts as meeting, and so does what is too much to
    be looked through.
    """
    known = _ways_of(program)
    return known is None or _Conflicts(program, Flow(program, barrier)).meet(known)


@fact
def _ways_of(program: Program) -> frozenset[object] | None:
    """All that `conflicts_of` compares, to tell what a barrier less brings. None where that is too much."""
    keys = [key for *_, key in islice(_analysis_of(program).ways(), MOST_WAYS + 1)]
    return None if len(keys) > MOST_WAYS else frozenset(keys)


@fact
def _analysis_of(program: Program) -> _Conflicts:
    """The analysis of the program as it is, with all its barriers."""
    return _Conflicts(program, flow_of(program))


@fact
def _any_rounds_of(program: Program) -> dict[object, bool]:
    """What was proved of pairs of accesses in any rounds, filled as it is asked for."""
    return {}


@fact
def _proofs_of(program: Program) -> Proofs:
    """Proofs about what blocks touch, whatever barriers there are."""
    uniformity = uniformity_of(program)

    def is_shared(atom: Atom) -> bool:
        if atom[0] == "condition":
            key, expression = atom[1], atom[2]
            assert isinstance(key, tuple)
            known = expression if isinstance(expression, ir.Expression) else None
            return uniformity.level_of_opaque(key, known) <= Level.UNIFORM
        return uniformity.level_of_atom(atom) <= Level.UNIFORM

    return Proofs(values_of(program), is_shared, sure_grid_facts(program))


class _Conflicts:
    def __init__(self, program: Program, flow: Flow) -> None:
        self.program = program
        self.flow = flow
        self.values: Values = values_of(program)
        self.uniformity: Uniformity = uniformity_of(program)
        self.limits = sure_grid_facts(program)
        grid = grid_of(program)
        self.axes = tuple(i for i, axis in enumerate(grid.axes) if axis.read) or (0,)
        if has_one_axis(program):
            self.axes = (0,)
        if not grid.persistent and not any(grid.axes[axis].read for axis in self.axes):
            self.axes = ()  # one block
        self.idle = _idle_axes_of(program) & {*self.axes}
        told = [grid.axes[axis] for axis in self.axes]
        self.chosen = not grid.persistent and any(axis.read and not axis.uses for axis in told)
        self._proofs = _proofs_of(program)
        self._order = {statement: index for index, statement in enumerate(statements_in(program))}
        self._any_rounds = _any_rounds_of(program)
        self.between = Between(program, flow)
        each = bool(self.between.atomics or self.between.unknown_waits or self.idle)
        self.groups = Groups(program, flow, each)
        self._by_tensor: dict[str, list[Footprint]] = {}
        for footprint in footprints_of(program) if self.axes else ():
            self._by_tensor.setdefault(footprint.access.base.name, []).append(footprint)
        self._placed_groups: dict[str, list[Group]] = {}
        self._conflicts = 0  # that were found so far
        self._aliases = 0  # ways in which two tensors were compared as one so far

    def meetings(self) -> Iterator[Conflict]:
        """What two blocks do to one tensor."""
        self._conflicts = 0
        for name, footprints in self._by_tensor.items():
            kinds = {f.kind for f in footprints}
            if "store" in kinds or {"atomic", "load"} <= kinds:
                yield from self._of_tensor(self.groups.of(name))

    def ways(self) -> Iterator[tuple[Group, Group, Reach, Reach, object]]:
        """Every way in which two accesses to one tensor can fall into one phase, with a key that tells it."""
        for name in self._by_tensor:
            for a, b in pairs(self.groups.of(name)):
                for start, reach_a, reach_b in self.groups.ways(a, b):
                    key = id(a.first.access), id(b.first.access), self.groups.loops_of(start), reach_a.key, reach_b.key
                    yield a, b, reach_a, reach_b, key

    def meet(self, known: frozenset[object]) -> bool:
        """Whether some way that is not `known` is not proved harmless."""
        fresh: dict[tuple[int, int], list[tuple[Group, Group, Reach, Reach]]] = {}
        for count, (a, b, reach_a, reach_b, key) in enumerate(self.ways()):
            if count == MOST_WAYS:
                return True
            if key not in known:
                fresh.setdefault((id(a), id(b)), []).append((a, b, reach_a, reach_b))
        if len(fresh) > MOST_PAIRS:
            return True
        for ways in fresh.values():
            if len(ways) > 1 and self._apart_at_any_time(*ways[0][:2]):
                continue
            for a, b, reach_a, reach_b in ways:
                apart = self._kept_apart(a, b, reach_a, reach_b, FEW_NODES)
                if not apart and not self.groups.are_one_number(a, b, reach_a, reach_b):
                    return True
        return False

    def _of_tensor(self, groups: list[Group]) -> Iterator[Conflict]:
        for count, (a, b) in enumerate(pairs(groups)):
            if count == MOST_PAIRS or self._conflicts >= MOST_CONFLICTS:
                reason = f"`{a.first.access.base.name}` has more than {MOST_PAIRS} pairs of accesses"
                if count < MOST_PAIRS:
                    reason = f"the kernel has more than {MOST_CONFLICTS} pairs of accesses that are not proved apart"
                reason += ", and not all were compared"
                yield Conflict("unknown", a.first, b.first, False, None, reason, limit=True)
                break
            conflict = self._compare(a, b)
            if conflict is not None:
                self._conflicts += 1
                yield conflict

    def _compare(self, a: Group, b: Group) -> Conflict | None:
        ways = list(islice(self.groups.ways(a, b), MOST_WAYS + 1))
        too_many = len(ways) > MOST_WAYS
        if self._in_turns(a.first.statement, b.first.statement):
            return None
        if not ways or (len(ways) > 1 and self._apart_at_any_time(a, b)):
            return None
        ways.sort(key=lambda way: way[1].wraps != way[2].wraps)
        unknowable = self._unknowable(a, b)
        nodes = MOST_NODES if unknowable is None else 2 * FEW_NODES
        verdict: Conflict | None = None
        for start, reach_a, reach_b in ways:
            if self.groups.are_one_number(a, b, reach_a, reach_b) or self._kept_apart(a, b, reach_a, reach_b, nodes):
                continue
            if self.groups.are_one_number_by_cell(a, b):
                continue
            found = self._verdict(a, b, start, reach_a, reach_b, unknowable)
            if verdict is None or _gravity(found) < _gravity(verdict):
                verdict = found
            if unknowable is not None or found.certain:
                break
        if too_many and (verdict is None or not verdict.certain):
            reason = f"they can fall into one phase in more than {MOST_WAYS} ways, and not all were compared"
            return Conflict("unknown", a.first, b.first, False, None, reason)
        return verdict

    def _in_turns(self, one: ir.Statement, other: ir.Statement) -> bool:
        """Whether two blocks come to these one after another, each when it is its turn."""
        return any(
            one in turns.held and other in turns.held and self._differ(turns) for turns in turns_of(self.program)
        )

    def _differ(self, turns: Turns) -> bool:
        """Whether no two blocks wait for one number."""
        known = self._any_rounds.get(turns)
        if known is None:
            cells = [turn.as_cells() for turn in turns.waits]
            pairs = [(one, other) for at, one in enumerate(cells) for other in cells[at:]]
            known = self._any_rounds[turns] = all(self._proofs.apart(*pair, self.axes) for pair in pairs)
        return known

    def _apart_at_any_time(self, a: Group, b: Group) -> bool:
        """`_apart_in_any_rounds`, kept with the program: no barrier has a part in it."""
        key = a.first.access, b.first.access, id(a.context), id(b.context)
        if key not in self._any_rounds:
            self._any_rounds[key] = self._apart_in_any_rounds(a, b)
        return self._any_rounds[key]

    def _apart_in_any_rounds(self, a: Group, b: Group) -> bool:
        """Whether they are disjoint however the rounds of the two blocks relate: one proof for all ways."""
        loops = (self.flow.loops[group.first.statement] for group in (a, b))
        one, other = (Reach(tuple((loop, FREE) for loop in each), ()) for each in loops)
        return self._kept_apart(a, b, one, other, FEW_NODES)

    def _kept_apart(self, a: Group, b: Group, reach_a: Reach, reach_b: Reach, nodes: int) -> bool:
        """Whether it is proved that two blocks meet in no cell."""
        cells_a, cells_b = self.groups.cells(a, reach_a), self.groups.cells(b, reach_b)
        if cells_a is None or cells_b is None:
            return False
        stores = a.first.kind == b.first.kind == "store"
        if not stores or not self.idle:
            bare_a, bare_b = _bare(cells_a), _bare(cells_b)
            if (bare_a, bare_b) != (cells_a, cells_b) and self._proofs.apart(bare_a, bare_b, self.axes, nodes=nodes):
                return True
            return self._proofs.apart(cells_a, cells_b, self.axes, nodes=nodes)
        # Blocks that differ along an idle axis alone are alike: what one of them stores in a round, so does the other.
        axes = tuple(axis for axis in self.axes if axis not in self.idle)
        return self._proofs.apart(cells_a, cells_b, axes, alike_too=True, nodes=nodes)

    # --- verdicts ---------------------------------------------------------------------------------

    def _verdict(
        self,
        a: Group,
        b: Group,
        start: Start,
        reach_a: Reach,
        reach_b: Reach,
        unknowable: tuple[str, Group | None] | None,
    ) -> Conflict:
        first, second = a.first, b.first
        cells_a, cells_b = self.groups.cells(a, reach_a), self.groups.cells(b, reach_b)
        if self._order[second.statement] < self._order[first.statement]:
            first, second = second, first
        begins = start if isinstance(start, ir.Barrier) else None
        if unknowable is not None or cells_a is None or cells_b is None:
            reason, group = unknowable or ("a subscript is not affine", None)
            seen = self._seen((a, b), (reach_a, reach_b), begins)
            of = None if group is None else group.first
            return seen or Conflict("unknown", first, second, False, None, reason, begins, of=of)
        if "atomic" in (a.first.kind, b.first.kind):
            return Conflict(
                "atomic", first, second, False, None, "an atomic of one block and a plain access of another", begins
            )
        idle = self.idle if a is b and a.first.kind == "store" else frozenset[int]()
        question = Question(self.program, self.values, self.uniformity, self.axes, idle, self.chosen)
        places = None  # a launch has all the barriers
        if self.flow is flow_of(self.program):
            places = (a.first.statement, a.first.kind), (b.first.statement, b.first.kind)
        meeting = search(question, cells_a, cells_b, places)
        if meeting.verdict == "unknown":
            seen = None if meeting.settled else self._seen((a, b), (reach_a, reach_b), begins)
            return seen or Conflict("unknown", first, second, False, None, meeting.reason, begins)
        kind = self._kind(a, b, reach_a, reach_b)
        return Conflict(kind, first, second, not meeting.needs_data, meeting.witness(Witness), meeting.reason, begins)

    def _kind(self, a: Group, b: Group, reach_a: Reach, reach_b: Reach) -> str:
        """What it is called where the two meet on these ways."""
        if "atomic" in (a.first.kind, b.first.kind):
            return "atomic"
        around = reach_a.wraps != reach_b.wraps
        stores = a.first.kind == b.first.kind == "store"
        if stores and self._one_place(a) and (a is b or (not around and self._same_place(a, b))):
            return "same-cell"
        return "loop" if around else "race"

    def _seen(
        self, groups: tuple[Group, Group], ways: tuple[Reach, Reach], begins: ir.Barrier | None
    ) -> Conflict | None:
        """The conflict, where a launch shows the two at one cell with nothing to order them.

        What is loaded is made up there: a place that hangs on it shows nothing. A launch has all the barriers, but
        for one in a function that is not known here.
        """
        first, second = sorted((group.first for group in groups), key=lambda one: self._order[one.statement])
        placed = [poly for one in (first, second) for axis in one.axes if axis is not None for poly in axis]
        made_up = any(poly.mentions(kind) for poly in placed for kind in ("load", "unsigned", "param", "thread"))
        if self.chosen or made_up or self.between.unknown_waits or self.flow is not flow_of(self.program):
            return None
        example = examples_of(self.program).of(_touch(first), _touch(second), begins)
        if example is None:
            return None
        axis = next(axis for axis, (one, other) in enumerate(zip(*example.met.blocks)) if one != other)
        one, other = (block[axis] for block in example.met.blocks)
        witness = Witness((one, other), example.counts[axis], example.sizes, example.met.cell)
        kind = self._kind(*groups, *ways)
        return Conflict(kind, first, second, not self._needs_data(groups, ways), witness, "", begins)

    def _needs_data(self, groups: tuple[Group, Group], ways: tuple[Reach, Reach]) -> bool:
        """Whether contents, or what atomics answer, may have a say in where blocks touch what, or in whether."""
        read = {s.result for s in self.between.atomics} & _variables_read(self.program)
        guards = [condition for group in groups for condition in conditions_of(group.context)]
        guards += [condition for way in ways for condition in way.conditions]
        around = [poly for guard in guards for poly in polys(guard)]
        around += [poly for group in groups for at in group.context.chain() for poly in at.given]
        around += [poly for group in groups for axis in group.axes for poly in axis]
        return bool(read) or any(opaques(guard) for guard in guards) or any(
            poly.mentions(kind) for poly in around for kind in DATA
        )

    def _one_place(self, group: Group) -> bool:
        """Whether the place of a store is the same for all blocks."""
        return all(
            axis is not None and self.uniformity.level_of_poly(axis[0]) <= Level.UNIFORM for axis in group.first.axes
        )

    @staticmethod
    def _same_place(a: Group, b: Group) -> bool:
        return all(
            fa is not None and fb is not None and fa[0] == fb[0] for fa, fb in zip(a.first.axes, b.first.axes)
        )

    def _unknowable(self, a: Group, b: Group) -> tuple[str, Group | None] | None:
        """Why arithmetic cannot tell: loaded data, an atomic's answer, an order that atomics make.

        With the access that it is about, where it is about one: the later in the text, where it is true of both.
        """
        a, b = sorted((a, b), key=lambda group: self._order[group.first.statement], reverse=True)
        for group in (a, b):
            for axis in group.first.axes:
                if axis is None:
                    return "a subscript is not affine", group
                for poly in axis:
                    if poly.mentions("atomic"):
                        return "a subscript holds the result of an atomic", group
                    if poly.mentions("load") or poly.mentions("unsigned"):
                        return "a subscript holds loaded data", group
        reason = self.between.reason(a, b)
        if reason is not None:
            return reason, None
        for group in (a, b):
            for axis in group.first.axes:
                if axis is not None and any(p.mentions(kind) for p in axis for kind in ("var", "expr", "op", "wrap")):
                    return f"a subscript {self.values.why_opaque(axis)}", group
        return None

    # --- aliases ----------------------------------------------------------------------------------

    def aliases(self) -> Iterator[Conflict]:
        """Pairs of tensors that would conflict if the caller passed one array for both."""
        self._aliases = 0
        stores = {
            name: next(f for f in footprints if f.kind == "store")
            for name, footprints in self._by_tensor.items()
            if any(f.kind == "store" for f in footprints)
        }
        for name, store in stores.items():
            for other, theirs in self._by_tensor.items():
                if other == name or (other in stores and other < name):
                    continue  # such a pair was looked at from the other side
                if _alike(store.access.base, theirs[0].access.base):
                    conflict = self._alias(self._placed(name), self._placed(other))
                    if conflict is not None:
                        yield conflict

    def _placed(self, name: str) -> list[Group]:
        """The accesses to a tensor of which it is known where they are."""
        if name not in self._placed_groups:
            self._placed_groups[name] = [g for g in self.groups.of(name) if None not in g.first.axes]
        return self._placed_groups[name]

    def _alias(self, mine: list[Group], theirs: list[Group]) -> Conflict | None:
        tried = 0
        for a in mine:
            for b in theirs:
                if "store" not in (a.first.kind, b.first.kind):
                    continue
                for _, reach_a, reach_b in self.groups.ways(a, b):
                    tried += 1
                    self._aliases += 1
                    given_up = tried > 40 or self._aliases > MOST_ALIASES
                    if given_up or not self._kept_apart(a, b, reach_a, reach_b, MOST_NODES):
                        first, second = a.first.access.base.name, b.first.access.base.name
                        return Conflict(
                            "alias", a.first, b.first, False, None,
                            f"safe only where `{first}` and `{second}` do not overlap",
                        )
        return None


def _bare(cells: Cells) -> Cells:
    """The cells without the conditions around the access, where these are so many that it is worth a try.

    Most accesses keep apart whatever holds around them, and without it many of them are one question.
    """
    at, count = cells.context, 0
    while at.condition is not None and at.parent is not None:
        at, count = at.parent, count + 1
    return cells if count <= MANY_CONDITIONS else Cells(cells.axes, cells.extents, at, cells.reach)


@fact
def _idle_axes_of(program: Program) -> frozenset[int]:
    """The axes whose block index is read into names that nothing reads: all blocks along them do the same."""
    unread: set[int] = set()
    used: set[int] = set()
    read = _variables_read(program)
    for statement, inside in all_evaluated(program).items():
        if isinstance(statement, ir.Atomic):
            return frozenset()  # each block gets an answer of its own
        lone = isinstance(statement, ir.Define) and statement.variable not in read
        for expression in inside:
            if isinstance(expression, ir.BlockIndex):
                (unread if lone else used).add(expression.axis)
    return frozenset(unread - used)


def _touch(footprint: Footprint) -> Touch:
    """An access as launches tell it."""
    return footprint.statement, footprint.kind, footprint.evaluated if footprint.kind == "load" else None


@fact
def _variables_read(program: Program) -> frozenset[ir.Variable | None]:
    """The variables whose value anything asks for."""
    evaluated = all_evaluated(program).values()
    return frozenset(one.variable for inside in evaluated for one in inside if isinstance(one, ir.VariableRef))


def _gravity(conflict: Conflict) -> tuple[bool, bool, bool]:
    """Lower is graver: a certain finding, then any finding, then one that needs no loop."""
    return (not conflict.certain, conflict.kind == "unknown", conflict.kind == "loop")


def _alike(a: ir.Tensor | ir.Variable, b: ir.Tensor | ir.Variable) -> bool:
    return (
        isinstance(a, ir.Tensor)
        and isinstance(b, ir.Tensor)
        and a.dtype == b.dtype
        and len(a.extents) == len(b.extents)
    )


__all__ = [
    "Conflict",
    "Witness",
    "aliases_of",
    "conflicts_of",
    "conflicts_without",
    "meetings_of",
    "separates",
]

"""Which accesses of two blocks in one phase can meet in a cell.

Two footprints of two different blocks in one phase are disjoint (proved), meet (with a witness) or are unknown (a
reason): only the first is silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from phobos.semantics import ir
from phobos.semantics.apart import Proofs
from phobos.semantics.cells import Cells, conditions_of
from phobos.semantics.conditions import Compare, opaques, polys
from phobos.semantics.examples import examples_of
from phobos.semantics.flow import FIRST, FREE, NEXT, SAME, Flow, Reach, Start, flow_of
from phobos.semantics.footprints import Footprint, footprints_of
from phobos.semantics.grid import grid_of, has_one_axis
from phobos.semantics.knowledge import ROOT
from phobos.semantics.levels import Level
from phobos.semantics.masks import sure_grid_facts
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.rehearsed_launch import Touch
from phobos.semantics.sameness import CellValues, value_key
from phobos.semantics.steady import phase_writes_of
from phobos.semantics.turns import Turns, turns_of
from phobos.semantics.twoblocks import FEW_NODES, MOST_NODES
from phobos.semantics.uniformity import Uniformity, uniformity_of
from phobos.semantics.values import (
    Context,
    Values,
    statements_in,
    values_of,
    walk,
    written_tensors,
)
from phobos.semantics.walking import all_evaluated, unknown_waits
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
    """

    kind: str
    first: Footprint
    second: Footprint
    certain: bool
    witness: Witness | None
    reason: str
    begins: ir.Barrier | None = None
    limit: bool = False


DATA = ("load", "unsigned", "atomic", "var", "expr", "op", "wrap", "thread")  # kinds of atoms that may hang on it
MOST_PAIRS = 1500  # of footprints of one tensor that are compared; beyond it the tensor is reported as not analysed
MOST_WAYS = 4000  # in which accesses fall into one phase: every loop around both multiplies them
MOST_ALIASES = 3000  # pairs of accesses to two tensors that are compared; of the other tensors none may overlap
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


@value
class _Group:
    """Footprints that mean the same: one stands for all."""

    first: Footprint
    axes: tuple[tuple[Poly, Poly], ...]
    context: Context
    reaches: dict[Start, tuple[Reach, ...]]
    value: object


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
        self._written = written_tensors(program)
        self._writers: dict[str, list[ir.Statement]] = {}
        for footprint in footprints_of(program):
            if footprint.kind != "load":
                self._writers.setdefault(footprint.access.base.name, []).append(footprint.statement)
        self._proofs = _proofs_of(program)
        self._order = {statement: index for index, statement in enumerate(statements_in(program))}
        self._cell_values = CellValues(program, self.values, self._is_fixed, self._is_steady)
        self._proved_cell_values = CellValues(program, self.values, self._is_fixed, self._is_proved_steady)
        self._any_rounds = _any_rounds_of(program)
        self._atomics = [s for s in statements_in(program) if isinstance(s, ir.Atomic)]
        self._unknown_waits = unknown_waits(program)
        self._by_tensor: dict[str, list[Footprint]] = {}
        for footprint in footprints_of(program) if self.axes else ():
            self._by_tensor.setdefault(footprint.access.base.name, []).append(footprint)
        self._groups: dict[str, list[_Group]] = {}
        self._conflicts = 0  # that were found so far
        self._aliases = 0  # ways in which two tensors were compared as one so far

    def meetings(self) -> Iterator[Conflict]:
        """What two blocks do to one tensor."""
        self._conflicts = 0
        for name, footprints in self._by_tensor.items():
            kinds = {f.kind for f in footprints}
            if "store" in kinds or {"atomic", "load"} <= kinds:
                yield from self._of_tensor(self._grouped(name))

    def _grouped(self, name: str) -> list[_Group]:
        """The footprints of a tensor, those that mean the same in one group."""
        if name not in self._groups:
            self._groups[name] = self._new_groups(self._by_tensor[name])
        return self._groups[name]

    def _new_groups(self, footprints: list[Footprint]) -> list[_Group]:
        groups: dict[object, _Group] = {}
        by_place = self._atomics or self._unknown_waits or self.idle
        for footprint in footprints:
            context = self.values.context(footprint.evaluated)
            if footprint.kind == "load":
                # A view is read where it is used: what holds there holds as well as what held at its `let`.
                here = self.values.context(footprint.statement)
                context = here if here.depth >= context.depth else context
            starts = self.flow.starts
            reaches = {
                starts[index]: self.flow.reached(starts[index])[footprint.statement]
                for index in sorted(self.flow.phases_with(footprint.statement))
            }
            stored: object = None
            if footprint.kind == "store" and isinstance(footprint.statement, ir.Store):
                stored = self._value(footprint.statement)
            key = (
                footprint.kind,
                tuple((first.key, length.key) for first, length in filter(None, footprint.axes)),
                id(context),
                tuple((id(start), tuple(way.key for way in ways)) for start, ways in reaches.items()),
                stored[:1] if isinstance(stored, tuple) and stored[:1] == ("own",) else stored,
                footprint.statement if footprint.kind == "atomic" or by_place else None,
            )
            axes = tuple(axis for axis in footprint.axes if axis is not None)
            axes = footprint.axes if len(axes) == len(footprint.axes) else axes  # type: ignore[assignment]
            groups.setdefault(key, _Group(footprint, axes, context, reaches, stored))
        return list(groups.values())

    def _value(self, statement: ir.Store) -> object:
        """Equal for two stores that put the same number in a cell for all blocks; else one of its own."""
        if statement.op is not None:
            return ("own", id(statement))
        by_cell = self._cell_values.key(statement)
        if by_cell is not None:
            return ("cell", by_cell)
        if self.uniformity.level(statement.value) <= Level.UNIFORM:
            return value_key(statement.value, self.values) or ("here", id(statement))
        return ("own", id(statement))

    def _is_fixed(self, poly: Poly) -> bool:
        """Whether neither blocks nor rounds change a value."""
        return self.uniformity.level_of_poly(poly) <= Level.UNIFORM and self.values.knowledge.home(poly) == ROOT

    def _is_steady(self, access: ir.Access, at: ir.Statement | None) -> bool:
        """Whether nobody writes what an access reads: in the phase of a statement, or in the whole kernel."""
        name = access.base.name
        if at is None:
            return name not in self._written
        return not any(self.flow.meet(at, writer) for writer in self._writers.get(name, ()))

    def _is_proved_steady(self, access: ir.Access, at: ir.Statement | None) -> bool:
        """The same for cells that two blocks read: one that is written meanwhile is, for one of them, another's."""
        if at is None:
            return self._is_steady(access, at)
        return not phase_writes_of(self.program).reach_others(at, access)

    def _one_value_by_cell(self, a: _Group, b: _Group) -> bool:
        """Whether what two stores put in a cell hangs on the cell alone; dearer than `_harmless`, so asked last."""
        mine, theirs = _stored_by(a), _stored_by(b)
        if mine is None or theirs is None:
            return False
        one, other = self._proved_cell_values.key(mine), self._proved_cell_values.key(theirs)
        return one is not None and one == other

    def ways(self) -> Iterator[tuple[_Group, _Group, Reach, Reach, object]]:
        """Every way in which two accesses to one tensor can fall into one phase, with a key that tells it."""
        for name in self._by_tensor:
            for a, b in _pairs(self._grouped(name)):
                for start, reach_a, reach_b in self._ways(a, b):
                    key = id(a.first.access), id(b.first.access), self._loops_of(start), reach_a.key, reach_b.key
                    yield a, b, reach_a, reach_b, key

    def meet(self, known: frozenset[object]) -> bool:
        """Whether some way that is not `known` is not proved harmless."""
        fresh: dict[tuple[int, int], list[tuple[_Group, _Group, Reach, Reach]]] = {}
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
                if not apart and not self._harmless(a, b, reach_a, reach_b):
                    return True
        return False

    def _of_tensor(self, groups: list[_Group]) -> Iterator[Conflict]:
        for count, (a, b) in enumerate(_pairs(groups)):
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

    def _compare(self, a: _Group, b: _Group) -> Conflict | None:
        ways = list(islice(self._ways(a, b), MOST_WAYS + 1))
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
            if self._harmless(a, b, reach_a, reach_b) or self._kept_apart(a, b, reach_a, reach_b, nodes):
                continue
            if self._one_value_by_cell(a, b):
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

    def _apart_at_any_time(self, a: _Group, b: _Group) -> bool:
        """`_apart_in_any_rounds`, kept with the program: no barrier has a part in it."""
        key = a.first.access, b.first.access, id(a.context), id(b.context)
        if key not in self._any_rounds:
            self._any_rounds[key] = self._apart_in_any_rounds(a, b)
        return self._any_rounds[key]

    def _apart_in_any_rounds(self, a: _Group, b: _Group) -> bool:
        """Whether they are disjoint however the rounds of the two blocks relate: one proof for all ways."""
        loops = (self.flow.loops[group.first.statement] for group in (a, b))
        one, other = (Reach(tuple((loop, FREE) for loop in each), ()) for each in loops)
        return self._kept_apart(a, b, one, other, FEW_NODES)

    def _kept_apart(self, a: _Group, b: _Group, reach_a: Reach, reach_b: Reach, nodes: int) -> bool:
        """Whether it is proved that two blocks meet in no cell."""
        cells_a, cells_b = self._cells(a, reach_a), self._cells(b, reach_b)
        if cells_a is None or cells_b is None:
            return False
        stores = a.first.kind == b.first.kind == "store"
        if not stores or not self.idle:
            return self._proofs.apart(cells_a, cells_b, self.axes, nodes=nodes)
        # Blocks that differ along an idle axis alone are alike: what one of them stores in a round, so does the other.
        axes = tuple(axis for axis in self.axes if axis not in self.idle)
        return self._proofs.apart(cells_a, cells_b, axes, alike_too=True, nodes=nodes)

    def _ways(self, a: _Group, b: _Group) -> Iterator[tuple[Start, Reach, Reach]]:
        seen: set[object] = set()
        for start, ways_a in a.reaches.items():
            for reach_a in ways_a:
                for reach_b in b.reaches.get(start, ()):
                    if a is b and reach_a is reach_b and a.first.kind != "store":
                        continue
                    key = (self._loops_of(start), reach_a.key, reach_b.key)
                    if key not in seen:
                        seen.add(key)
                        yield start, reach_a, reach_b

    def _loops_of(self, start: Start) -> object:
        return () if start is None else tuple(map(id, self.flow.loops[start]))

    def _cells(self, group: _Group, reach: Reach) -> Cells | None:
        footprint = group.first
        if any(axis is None for axis in footprint.axes):
            return None
        extents = tuple(self.values.extent(footprint.access.base, axis) for axis in range(len(footprint.axes)))
        return Cells(group.axes, extents, group.context, reach)

    def _harmless(self, a: _Group, b: _Group, reach_a: Reach, reach_b: Reach) -> bool:
        """Whether both store one and the same number wherever they meet."""
        if a.first.kind != "store" or b.first.kind != "store" or a.value != b.value:
            return False
        store = a.first.statement
        if not isinstance(a.value, tuple) or a.value[0] == "own" or not isinstance(store, ir.Store):
            return False
        if a.value[0] == "cell":
            return True
        if not self._same_rounds(a, store.value, reach_a, reach_b):
            return False
        if isinstance(store.value.type, ir.ScalarT):
            return True
        return all(
            fa is not None
            and fb is not None
            and fa[0] == fb[0]
            and self.uniformity.level_of_poly(fa[0]) <= Level.UNIFORM
            and not self._freely(fa[0], reach_a, reach_b)
            for fa, fb in zip(a.first.axes, b.first.axes)
        )

    def _same_rounds(self, group: _Group, stored: ir.Expression, reach_a: Reach, reach_b: Reach) -> bool:
        """Whether the value, uniform at any one time, is the same at the two times: it hangs on no free round."""
        for expression in walk(stored):
            poly = self.values.polys.get(expression)
            if poly is not None:
                if self._freely(poly, reach_a, reach_b):
                    return False
            elif isinstance(expression, (ir.VariableRef, ir.Load)) and self._loops_free(reach_a, reach_b):
                return False
        return True

    def _freely(self, poly: Poly, reach_a: Reach, reach_b: Reach) -> bool:
        """Whether a value can be of different rounds on the two ways."""
        mine = {id(loop): relation for loop, relation in reach_a.rounds}
        theirs = {id(loop): relation for loop, relation in reach_b.rounds}
        knowledge = self.values.knowledge
        for atom in poly.atoms:
            at = knowledge.homes.get(atom, ROOT)
            if atom[0] == "round":
                at = int(str(atom[1]))
            while at != ROOT:
                loop = self.values.by_atom.get(("round", at))
                if loop is not None:
                    one, other = mine.get(id(loop.statement)), theirs.get(id(loop.statement))
                    if one != other or one not in (SAME, NEXT, FIRST):
                        return True
                if atom[0] == "round":
                    break
                at = knowledge.parents[at]
        return False

    @staticmethod
    def _loops_free(reach_a: Reach, reach_b: Reach) -> bool:
        mine = {id(loop): relation for loop, relation in reach_a.rounds}
        theirs = {id(loop): relation for loop, relation in reach_b.rounds}
        return any(mine[k] != theirs.get(k) or mine[k] not in (SAME, NEXT, FIRST) for k in mine)

    # --- verdicts ---------------------------------------------------------------------------------

    def _verdict(
        self,
        a: _Group,
        b: _Group,
        start: Start,
        reach_a: Reach,
        reach_b: Reach,
        unknowable: str | None,
    ) -> Conflict:
        first, second = a.first, b.first
        cells_a, cells_b = self._cells(a, reach_a), self._cells(b, reach_b)
        if self._order[second.statement] < self._order[first.statement]:
            first, second = second, first
        begins = start if isinstance(start, ir.Barrier) else None
        if unknowable is not None or cells_a is None or cells_b is None:
            reason = unknowable or "a subscript is not affine"
            seen = self._seen((a, b), (reach_a, reach_b), begins)
            return seen or Conflict("unknown", first, second, False, None, reason, begins)
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

    def _kind(self, a: _Group, b: _Group, reach_a: Reach, reach_b: Reach) -> str:
        """What it is called where the two meet on these ways."""
        if "atomic" in (a.first.kind, b.first.kind):
            return "atomic"
        around = reach_a.wraps != reach_b.wraps
        stores = a.first.kind == b.first.kind == "store"
        if stores and self._one_place(a) and (a is b or (not around and self._same_place(a, b))):
            return "same-cell"
        return "loop" if around else "race"

    def _seen(
        self, groups: tuple[_Group, _Group], ways: tuple[Reach, Reach], begins: ir.Barrier | None
    ) -> Conflict | None:
        """The conflict, where a launch shows the two at one cell with nothing to order them.

        What is loaded is made up there: a place that hangs on it shows nothing. A launch has all the barriers, but
        for one in a function that is not known here.
        """
        first, second = sorted((group.first for group in groups), key=lambda one: self._order[one.statement])
        placed = [poly for one in (first, second) for axis in one.axes if axis is not None for poly in axis]
        made_up = any(poly.mentions(kind) for poly in placed for kind in ("load", "unsigned", "param", "thread"))
        if self.chosen or made_up or self._unknown_waits or self.flow is not flow_of(self.program):
            return None
        example = examples_of(self.program).of(_touch(first), _touch(second), begins)
        if example is None:
            return None
        axis = next(axis for axis, (one, other) in enumerate(zip(*example.met.blocks)) if one != other)
        one, other = (block[axis] for block in example.met.blocks)
        witness = Witness((one, other), example.counts[axis], example.sizes, example.met.cell)
        kind = self._kind(*groups, *ways)
        return Conflict(kind, first, second, not self._needs_data(groups, ways), witness, "", begins)

    def _needs_data(self, groups: tuple[_Group, _Group], ways: tuple[Reach, Reach]) -> bool:
        """Whether contents, or what atomics answer, may have a say in where blocks touch what, or in whether."""
        read = {s.result for s in self._atomics} & _variables_read(self.program)
        guards = [condition for group in groups for condition in conditions_of(group.context)]
        guards += [condition for way in ways for condition in way.conditions]
        around = [poly for guard in guards for poly in polys(guard)]
        around += [poly for group in groups for at in group.context.chain() for poly in at.given]
        around += [poly for group in groups for axis in group.axes for poly in axis]
        return bool(read) or any(opaques(guard) for guard in guards) or any(
            poly.mentions(kind) for poly in around for kind in DATA
        )

    def _one_place(self, group: _Group) -> bool:
        """Whether the place of a store is the same for all blocks."""
        return all(
            axis is not None and self.uniformity.level_of_poly(axis[0]) <= Level.UNIFORM for axis in group.first.axes
        )

    @staticmethod
    def _same_place(a: _Group, b: _Group) -> bool:
        return all(
            fa is not None and fb is not None and fa[0] == fb[0] for fa, fb in zip(a.first.axes, b.first.axes)
        )

    def _unknowable(self, a: _Group, b: _Group) -> str | None:
        """Why arithmetic cannot tell: loaded data, an atomic's answer, an order that atomics make."""
        for group in (a, b):
            for axis in group.first.axes:
                if axis is None:
                    return "a subscript is not affine"
                for poly in axis:
                    if poly.mentions("atomic"):
                        return "a subscript holds the result of an atomic"
                    if poly.mentions("load") or poly.mentions("unsigned"):
                        return "a subscript holds loaded data"
        if self._maybe_parted(a.first.statement, b.first.statement):
            return "a function that is not known here may hold a barrier between the two"
        if self._atomics:
            if self._won(a) and self._won(b):
                return "both run only for one result of an atomic"
            atomic = next((g.first.access.base.name for g in (a, b) if g.first.kind == "atomic"), None)
            tensor = self._ordered(a.first.statement, b.first.statement, atomic)
            if tensor is not None:
                return f"both blocks do an atomic on `{tensor}` between the two, which may order them"
            for one, other in ((a, b), (b, a)):
                if one.first.kind == "atomic" and self._won(other, one.first.access.base.name):
                    return "the plain access runs only for one result of an atomic on that tensor"
        for group in (a, b):
            for axis in group.first.axes:
                if axis is not None and any(p.mentions(kind) for p in axis for kind in ("var", "expr", "op", "wrap")):
                    return f"a subscript {self.values.why_opaque(axis)}"
        return None

    def _won(self, group: _Group, tensor: str | None = None) -> bool:
        """Whether an access runs only where an atomic gave one particular answer."""
        for condition in conditions_of(group.context):
            parts = getattr(condition, "parts", (condition,))
            for part in parts:
                if isinstance(part, Compare) and part.op == "eq":
                    for atom in part.poly.atoms:
                        atomic = self.values.atomics.get(atom)
                        if atomic is not None and tensor in (None, atomic.tensor.name):
                            return True
        return False

    def _maybe_parted(self, a: ir.Statement, b: ir.Statement) -> bool:
        """Whether what may be a barrier stands on a way from one to the other."""
        return any(
            call in self.flow.reached(one) and other in self.flow.reached(call)
            for call in self._unknown_waits
            for one, other in ((a, b), (b, a))
        )

    def _ordered(self, a: ir.Statement, b: ir.Statement, mine: str | None) -> str | None:
        """A tensor on which both do an atomic, one after `a` and one before `b`, or the other way round.

        Where one of the two is itself an atomic, more of them on that tensor (`mine`) order nothing.
        """
        for one, other in ((a, b), (b, a)):
            after = {s.tensor.name for s in self._atomics if s in self.flow.reached(one)}
            for atomic in self._atomics:
                name = atomic.tensor.name
                if name in after and name != mine and other in self.flow.reached(atomic):
                    return name
        return None

    # --- aliases ----------------------------------------------------------------------------------

    def aliases(self) -> Iterator[Conflict]:
        """Pairs of tensors that would conflict if the caller passed one array for both."""
        names = list(self._by_tensor)
        self._aliases = 0
        for name in names:
            stores = [f for f in self._by_tensor[name] if f.kind == "store"]
            for other in names:
                if other == name or not stores:
                    continue
                theirs = self._by_tensor[other]
                if any(f.kind == "store" for f in theirs) and other < name:
                    continue  # the pair was looked at from the other side
                if not _alike(stores[0].access.base, theirs[0].access.base):
                    continue
                conflict = self._alias(self._grouped(name), self._grouped(other))
                if conflict is not None:
                    yield conflict

    def _alias(self, mine: list[_Group], theirs: list[_Group]) -> Conflict | None:
        tried = 0
        for a in mine:
            for b in theirs:
                if "store" not in (a.first.kind, b.first.kind):
                    continue
                if any(axis is None for group in (a, b) for axis in group.first.axes):
                    continue
                for _, reach_a, reach_b in self._ways(a, b):
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


def _pairs(groups: list[_Group]) -> Iterator[tuple[_Group, _Group]]:
    """Those that can be in one phase and of which one is a plain store, or one an atomic and one a load."""
    against = {"store": ("store", "atomic", "load"), "atomic": ("store", "load"), "load": ("store", "atomic")}
    together: dict[tuple[Start, str], list[int]] = {}  # the last first
    for index in reversed(range(len(groups))):
        for start in groups[index].reaches:
            together.setdefault((start, groups[index].first.kind), []).append(index)
    found = 0
    for group in groups:
        kind = group.first.kind
        partners: set[int] = set()
        for start in group.reaches:
            for other in against[kind]:
                partners.update(together.get((start, other), ()))
        for start in group.reaches:
            together[start, kind].pop()  # this one, which those behind it have been paired with
        for partner in sorted(partners):
            yield group, groups[partner]
        found += len(partners)
        if found > 4 * MOST_PAIRS:
            break  # more than anybody compares


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


def _stored_by(group: _Group) -> ir.Store | None:
    """The store that a group is, where it puts a value there whatever was there before."""
    statement = group.first.statement
    plain = group.first.kind == "store" and isinstance(statement, ir.Store) and statement.op is None
    return statement if plain and isinstance(statement, ir.Store) else None


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

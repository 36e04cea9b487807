"""Accesses in groups: those to one tensor that touch the same cells at the same times and put the same numbers there.

What is found of one of a group holds for all of them. Two groups can fall into one phase in many ways; where both put
one number in every cell that both reach, it does not matter which block comes last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from phobos.semantics import ir
from phobos.semantics.cells import Cells
from phobos.semantics.flow import FIRST, NEXT, SAME, Flow, Reach, Start
from phobos.semantics.footprints import Footprint, footprints_of
from phobos.semantics.knowledge import ROOT
from phobos.semantics.levels import Level
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program
from phobos.semantics.sameness import CellValues, value_key
from phobos.semantics.steady import phase_writes_of
from phobos.semantics.uniformity import Uniformity, uniformity_of
from phobos.semantics.values import Context, Values, values_of, walk, written_tensors
from phobos.value import value


@value
class Group:
    """Accesses that mean the same: the first stands for all.

    `reaches` are the ways to be there, by the start of the phase; `stored` is equal for stores of one number.
    """

    first: Footprint
    axes: tuple[tuple[Poly, Poly], ...]
    context: Context
    reaches: Mapping[Start, tuple[Reach, ...]]
    stored: object


class Groups:
    """The accesses of one program in groups. With `each`, no two statements share one: where they stand matters."""

    def __init__(self, program: Program, flow: Flow, each: bool) -> None:
        self.program = program
        self.flow = flow
        self.each = each
        self.values: Values = values_of(program)
        self.uniformity: Uniformity = uniformity_of(program)
        self._written = written_tensors(program)
        self._writers: dict[str, list[ir.Statement]] = {}
        self._by_tensor: dict[str, list[Footprint]] = {}
        for footprint in footprints_of(program):
            name = footprint.access.base.name
            self._by_tensor.setdefault(name, []).append(footprint)
            if footprint.kind != "load":
                self._writers.setdefault(name, []).append(footprint.statement)
        self._cell_values = CellValues(program, self.values, self._is_fixed, self._is_steady)
        self._proved_cell_values = CellValues(program, self.values, self._is_fixed, self._is_proved_steady)
        self._known: dict[str, list[Group]] = {}
        self._loops: dict[ir.Statement, object] = {}

    def of(self, tensor: str) -> list[Group]:
        """Those of the accesses to one tensor, in the order of the text."""
        if tensor not in self._known:
            self._known[tensor] = self._made(self._by_tensor[tensor])
        return self._known[tensor]

    def ways(self, a: Group, b: Group) -> Iterator[tuple[Start, Reach, Reach]]:
        """Every way in which two can fall into one phase, of those that mean the same the first."""
        seen: set[object] = set()
        alike: set[object] = set()
        for start, ways_a in a.reaches.items():
            ways_b = b.reaches.get(start)
            if ways_b is None:
                continue
            loops = self.loops_of(start)
            if (loops, ways_a, ways_b) in alike:
                continue  # one of the starts before leads to both as this one does
            alike.add((loops, ways_a, ways_b))
            for reach_a in ways_a:
                for reach_b in ways_b:
                    if a is b and reach_a is reach_b and a.first.kind != "store":
                        continue
                    key = loops, id(reach_a), id(reach_b)
                    if key not in seen:
                        seen.add(key)
                        yield start, reach_a, reach_b

    def loops_of(self, start: Start) -> object:
        """Equal for starts in the same loops."""
        if start is None:
            return ()
        if start not in self._loops:
            self._loops[start] = tuple(map(id, self.flow.loops[start]))
        return self._loops[start]

    def cells(self, group: Group, reach: Reach) -> Cells | None:
        """The cells that are touched on a way; None where a subscript is not affine."""
        footprint = group.first
        if any(axis is None for axis in footprint.axes):
            return None
        extents = tuple(self.values.extent(footprint.access.base, axis) for axis in range(len(footprint.axes)))
        return Cells(group.axes, extents, group.context, reach)

    def are_one_number(self, a: Group, b: Group, reach_a: Reach, reach_b: Reach) -> bool:
        """Whether both store one and the same number wherever they meet."""
        if a.first.kind != "store" or b.first.kind != "store" or a.stored != b.stored:
            return False
        store = a.first.statement
        if not isinstance(a.stored, tuple) or a.stored[0] == "own" or not isinstance(store, ir.Store):
            return False
        if a.stored[0] == "cell":
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

    def are_one_number_by_cell(self, a: Group, b: Group) -> bool:
        """Whether what two stores put in a cell hangs on the cell alone: dearer than the other, so asked last."""
        mine, theirs = _put_by(a), _put_by(b)
        if mine is None or theirs is None:
            return False
        one, other = self._proved_cell_values.key(mine), self._proved_cell_values.key(theirs)
        return one is not None and one == other

    # --- how they come about ---

    def _made(self, footprints: list[Footprint]) -> list[Group]:
        groups: dict[object, Group] = {}
        for footprint in footprints:
            context = self.values.context(footprint.evaluated)
            if footprint.kind == "load":
                # A view is read where it is used: what holds there holds as well as what held at its `let`.
                here = self.values.context(footprint.statement)
                context = here if here.depth >= context.depth else context
            reaches = self.flow.ways(footprint.statement)
            stored: object = None
            if footprint.kind == "store" and isinstance(footprint.statement, ir.Store):
                stored = self._stored(footprint.statement)
            key = (
                footprint.kind,
                tuple((first.key, length.key) for first, length in filter(None, footprint.axes)),
                id(context),
                tuple(reaches.items()),
                stored[:1] if isinstance(stored, tuple) and stored[:1] == ("own",) else stored,
                footprint.statement if footprint.kind == "atomic" or self.each else None,
            )
            axes = tuple(axis for axis in footprint.axes if axis is not None)
            axes = footprint.axes if len(axes) == len(footprint.axes) else axes  # type: ignore[assignment]
            groups.setdefault(key, Group(footprint, axes, context, reaches, stored))
        return list(groups.values())

    def _stored(self, statement: ir.Store) -> object:
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

    def _same_rounds(self, group: Group, stored: ir.Expression, reach_a: Reach, reach_b: Reach) -> bool:
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
        mine, theirs = reach_a.by_loop, reach_b.by_loop
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
        mine, theirs = reach_a.by_loop, reach_b.by_loop
        return any(mine[k] != theirs.get(k) or mine[k] not in (SAME, NEXT, FIRST) for k in mine)


MOST_PAIRS = 1500  # of footprints of one tensor that are compared; beyond it the tensor is reported as not analysed


def pairs(groups: list[Group]) -> Iterator[tuple[Group, Group]]:
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


def _put_by(group: Group) -> ir.Store | None:
    """The store that a group is, where it puts a value there whatever was there before."""
    statement = group.first.statement
    if group.first.kind == "store" and isinstance(statement, ir.Store) and statement.op is None:
        return statement
    return None


__all__ = ["MOST_PAIRS", "Group", "Groups", "pairs"]

"""Whether the blocks of one kernel may run beside those of another, or must wait for all of them.

Two kernels of one launch: any block of the one may run before, after or together with any block of the other. So
every access of the one is compared with every access of the other to the same tensor, one of the two a write. They
are proved apart, or an example shows a cell in which they meet, or neither is known: then only the author can say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Literal

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.cells import Cells, conditions_of
from phobos.semantics.concrete import plain_atoms
from phobos.semantics.conditions import opaques, polys
from phobos.semantics.copying import Copier, copied, joined
from phobos.semantics.flow import FREE, Reach, flow_of
from phobos.semantics.footprints import Footprint, footprints_of
from phobos.semantics.grid import Grid, grid_of
from phobos.semantics.groups import MOST_PAIRS
from phobos.semantics.masks import sure_grid_facts
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program
from phobos.semantics.twoblocks import Pair
from phobos.semantics.values import Values, values_of
from phobos.semantics.variation import agreed_count, diagonal, has_cells, interesting_numbers
from phobos.semantics.walking import statements_in, statements_of, walk
from phobos.semantics.witness import MOST_BOXES, MOST_COUNT, MOST_ROUNDS, MOST_SETTINGS, OPAQUE, Box, box_at
from phobos.value import value

MOST_BLOCKS = 16  # of a grid of one dimension, in an example
AXES = 3  # of the grid of one kernel; the other's come after them


@value
class Touch:
    """An access of one kernel: "reads", "writes" or "updates" (by an atomic) the tensor, at `span`."""

    tensor: str
    does: Literal["reads", "writes", "updates"]
    span: Span


@value
class Meeting:
    """Sizes, a block of either kernel, and the cell of the tensor that both touch."""

    blocks: tuple[tuple[int, ...], tuple[int, ...]]
    sizes: tuple[tuple[str, int], ...]
    cell: tuple[int, ...]
    needs_data: bool


@value
class Relation:
    """What was found out about two kernels. `first` and `second` are the accesses that decide it.

    "apart": nothing that order matters for; `reason` says why. "ordered": an example, `meeting`, shows a cell in which
    both meet. "unknown": neither a proof nor an example, and `reason` says what is in the way.
    """

    verdict: Literal["apart", "ordered", "unknown"]
    first: Touch | None
    second: Touch | None
    meeting: Meeting | None
    reason: str


def why_wait(found: Relation, earlier: str, line_of: Callable[[Span], int]) -> str:
    """What a later kernel does that needs a barrier: said of it, `earlier` being the kernel it waits for."""
    first, second = found.first, found.second
    assert first is not None and second is not None
    text = (
        f"{_DOES[second.does]} `{second.tensor}` (line {line_of(second.span)}), which `{earlier}` "
        f"{_DOES[first.does]} (line {line_of(first.span)})"
    )
    if found.verdict == "unknown":
        return f"{text}; whether they meet is not known ({found.reason}), and the order asked for is a barrier"
    if found.meeting is None or found.meeting.needs_data:
        return text
    cell = ", ".join(map(str, found.meeting.cell))
    sizes = ", ".join(f"{name} = {number_}" for name, number_ in found.meeting.sizes)
    return f"{text}: both touch {second.tensor}[{cell}]{f' at {sizes}' if sizes else ''}"


def why_free(found: Relation, line_of: Callable[[Span], int]) -> str:
    """Why no barrier is needed."""
    if found.verdict != "unknown":
        return found.reason
    first, second = found.first, found.second
    assert first is not None and second is not None
    return (
        f"on your word; whether they meet in a cell of `{first.tensor}` (lines {line_of(first.span)} and "
        f"{line_of(second.span)}) is not known: {found.reason}"
    )


_DOES = {"reads": "reads", "writes": "writes", "updates": "has atomics on"}


def relation(one: Program, other: Program) -> Relation:
    """How the blocks of `one` stand to those of `other`, whose tensors of the same names are the same arrays."""
    shared = [name for name in one.tensors if name in other.tensors]
    if not shared:
        return Relation("apart", None, None, None, "they have no tensor in common")
    return _Comparison(one, other).verdict(shared)


class _Comparison:
    def __init__(self, one: Program, other: Program) -> None:
        self.grids: tuple[Grid, Grid] = (grid_of(one), grid_of(other))
        programs, bodies = [], []
        tensors: dict[str, ir.Tensor] = {}
        for which, program in enumerate((one, other)):
            copier = Copier(lambda span: span, axes=AXES * which, leaves=True)
            for tensor in program.tensors.values():
                if tensor.name in tensors:
                    copier.stands_for(tensor, tensors[tensor.name])
            made = copied(program, copier)
            tensors.update(made.tensors)
            programs.append(made)
            bodies.append(made.body)
        span = Span(None, 0, 0)
        inlined = tuple(ir.Inline(span, (), program.name, body, None) for program, body in zip(programs, bodies))
        self.program = joined("", (programs[0], programs[1]), ir.Block(inlined), one.launch, {})
        self.values: Values = values_of(self.program)
        self.loops = flow_of(self.program).loops
        self.limits = (*sure_grid_facts(one), *(_moved(limit) for limit in sure_grid_facts(other)))
        mine = set(statements_of(bodies[0]))
        self.footprints: tuple[list[Footprint], list[Footprint]] = ([], [])
        for footprint in footprints_of(self.program):
            self.footprints[footprint.statement not in mine].append(footprint)
        self.quiet = _quiet_atomics(self.program)

    def verdict(self, shared: list[str]) -> Relation:
        apart: list[str] = []
        unknown: Relation | None = None
        for name in shared:
            found = self._of_tensor(name)
            if found.verdict == "ordered":
                return found
            if found.verdict == "unknown":
                unknown = unknown or found
            else:
                apart.append(found.reason)
        return unknown or Relation("apart", None, None, None, _listed(apart))

    def _of_tensor(self, name: str) -> Relation:
        mine, theirs = ([f for f in side if f.access.base.name == name] for side in self.footprints)
        if all(f.kind == "load" for f in (*mine, *theirs)):
            return Relation("apart", None, None, None, f"both only read `{name}`" if mine and theirs else "")
        pairs = [(a, b) for a in mine for b in theirs if self._matters(a, b)]
        if not pairs:
            quiet = f"both only add to `{name}`, in any order" if mine and theirs else ""
            return Relation("apart", None, None, None, quiet)
        unknown: Relation | None = None
        seen: set[object] = set()
        for count, (a, b) in enumerate(pairs):
            key = a.kind, b.kind, *(self._key(f) for f in (a, b))
            if key in seen:
                continue
            seen.add(key)
            if count >= MOST_PAIRS:
                reason = f"`{name}` has more than {MOST_PAIRS} pairs of accesses, and not all were compared"
                return unknown or Relation("unknown", self._touch(a), self._touch(b), None, reason)
            found = self._compare(a, b)
            if found is None:
                continue
            if found.verdict == "ordered":
                return found
            unknown = unknown or found
        return unknown or Relation("apart", None, None, None, f"their cells of `{name}` are proved apart")

    def _key(self, footprint: Footprint) -> object:
        axes = tuple(None if axis is None else (axis[0].key, axis[1].key) for axis in footprint.axes)
        return axes, id(self.values.context(footprint.evaluated)), id(self.values.context(footprint.statement))

    def _matters(self, a: Footprint, b: Footprint) -> bool:
        """Whether it makes a difference which of the two comes first."""
        kinds = {a.kind, b.kind}
        if kinds == {"load"}:
            return False
        return not (kinds == {"atomic"} and a.statement in self.quiet and b.statement in self.quiet)

    def _touch(self, footprint: Footprint) -> Touch:
        does: dict[str, Literal["reads", "writes", "updates"]] = {
            "load": "reads", "store": "writes", "atomic": "updates"
        }  # fmt: skip
        return Touch(footprint.access.base.name, does[footprint.kind], footprint.access.span)

    def _compare(self, a: Footprint, b: Footprint) -> Relation | None:
        """None where the two are proved apart."""
        cells_a, cells_b = self._cells(a), self._cells(b)
        first, second = self._touch(a), self._touch(b)
        if cells_a is None or cells_b is None:
            return Relation("unknown", first, second, None, "a subscript is not affine")
        pair = Pair(self.values, cells_a, cells_b, lambda atom: False, self.limits, ())
        for axis in range(2 * AXES):
            atom: Atom = ("block", axis)
            pair.own[atom] = atom, axis // AXES
        if pair.disjoint():
            return None
        why = _unknowable((a, b), (cells_a, cells_b), self.values)
        met = self._search(cells_a, cells_b) if why is None else None
        if met is not None:
            return Relation("ordered", first, second, met, "")
        return Relation("unknown", first, second, None, why or "no proof was found, and no example among small sizes")

    def _cells(self, footprint: Footprint) -> Cells | None:
        axes = tuple(axis for axis in footprint.axes if axis is not None)
        if len(axes) < len(footprint.axes):
            return None
        context = self.values.context(footprint.evaluated)
        if footprint.kind == "load":
            here = self.values.context(footprint.statement)  # a view is read where it is used
            context = here if here.depth >= context.depth else context
        extents = tuple(self.values.extent(footprint.access.base, axis) for axis in range(len(axes)))
        loops = self.loops[footprint.statement]
        return Cells(axes, extents, context, Reach(tuple((loop, FREE) for loop in loops), ()))

    # --- an example -------------------------------------------------------------------------------

    def _search(self, a: Cells, b: Cells) -> Meeting | None:
        """Small sizes at which a block of one kernel touches a cell that a block of the other touches."""
        best: Meeting | None = None
        for settings in self._settings(a, b):
            sides = [self._boxes(cells, which, settings) for which, cells in enumerate((a, b))]
            for one, other in product(*sides):
                cell = tuple(max(x, y) for x, y in zip(one.low, other.low))
                if any(c >= min(x, y) for c, x, y in zip(cell, one.high, other.high)):
                    continue
                sizes = tuple((str(atom[1]), n) for atom, n in settings.items() if atom[0] in ("dim", "param"))
                found = Meeting((one.block, other.block), sizes, cell, one.data or other.data)
                if not found.needs_data:
                    return found
                best = best or found
                break
        return best

    def _settings(self, a: Cells, b: Cells) -> Iterator[dict[Atom, int]]:
        concerned: list[Poly] = []
        for cells in (a, b):
            concerned += [poly for axis in cells.axes for poly in axis]
            concerned += cells.extents
            for place in cells.context.chain():
                concerned += place.given
                if place.condition is not None:
                    concerned += polys(place.condition)
        for grid in self.grids:
            concerned += [poly for axis in grid.axes for use in axis.uses for poly in (use.extent, use.divisor)]
        interesting = interesting_numbers(concerned)
        names: list[Atom] = []
        choices: list[list[int]] = []
        for atom in sorted({atom for poly in concerned for atom in plain_atoms(poly)}, key=repr):
            if atom[0] == "dim":
                step = self.values.knowledge.divisor_of_atom(atom)
                choices.append(interesting[:7] if step == 1 else [step * n for n in (4, 1, 2, 3, 9)])
            elif atom[0] == "param":
                choices.append([1, 2, *interesting[:2], 0])
            else:
                continue
            names.append(atom)
        for chosen in islice(diagonal(choices), MOST_SETTINGS):
            yield dict(zip(names, chosen))

    def _boxes(self, cells: Cells, which: int, settings: dict[Atom, int]) -> list[Box]:
        counts = self._counts(which, settings)
        if counts is None:
            return []
        loops = [at.loop for at in cells.context.chain() if at.loop is not None]
        conditions = [*conditions_of(cells.context)]
        found: list[Box] = []
        for block in product(*(range(count) for count in counts)):
            for rounds in islice(product(range(MOST_ROUNDS), repeat=len(loops)), MOST_ROUNDS**5):
                at = dict(settings)
                at.update((loop.variable, n) for loop, n in zip(loops, rounds))
                for axis in range(AXES):
                    at["block", axis + AXES * which] = block[axis]
                    at["blocks", axis + AXES * which] = counts[axis]
                box = box_at(cells, conditions, at, block)
                if box is not None:
                    found.append(box)
                    if len(found) >= MOST_BOXES:
                        return found
        return found

    def _counts(self, which: int, settings: dict[Atom, int]) -> tuple[int, ...] | None:
        """The first few blocks of a kernel's grid at a setting, None where no launch would have it."""
        grid = self.grids[which]
        counts: list[int] = []
        most_along = MOST_BLOCKS if sum(axis.read for axis in grid.axes) == 1 else MOST_COUNT
        for axis in grid.axes:
            count = agreed_count(axis, settings) if axis.uses else 2 if axis.read else 1
            if count is None:
                return None
            counts.append(min(most_along, count) if axis.uses else count)
        return tuple(counts) if has_cells(grid, counts, settings) else None


def _unknowable(both: tuple[Footprint, Footprint], cells: tuple[Cells, Cells], values: Values) -> str | None:
    """Why no example can be looked for: numbers alone do not say which cells these are."""
    for footprint in both:
        for axis in footprint.axes:
            for poly in axis or ():
                if poly.mentions("atomic"):
                    return "a subscript holds the result of an atomic"
                if poly.mentions("load") or poly.mentions("unsigned"):
                    return "a subscript holds loaded data"
                if any(poly.mentions(kind) for kind in OPAQUE):
                    return f"a subscript {values.why_opaque((poly,))}"
    guards = [condition for one in cells for condition in conditions_of(one.context)]
    if any(poly.mentions(kind) for guard in guards for poly in polys(guard) for kind in OPAQUE) or any(
        opaque.expression is None for guard in guards for opaque in opaques(guard)
    ):
        return "a condition around it changes in a way that has no closed form"
    return None


def _quiet_atomics(program: Program) -> frozenset[ir.Statement]:
    """The additions whose old value nobody reads: any order of them leaves the same sums."""
    read: set[ir.Variable] = set()
    from phobos.semantics.walking import evaluated_by

    for statement in statements_in(program):
        for root in evaluated_by(statement):
            read.update(e.variable for e in walk(root) if isinstance(e, ir.VariableRef))
    return frozenset(
        s for s in statements_in(program)
        if isinstance(s, ir.Atomic) and s.kind == "add" and (s.result is None or s.result not in read)
    )  # fmt: skip


def _moved(limit: Poly) -> Poly:
    """What is known of the second kernel's blocks, said of the axes that they have here."""
    return limit.substitute(lambda atom: Poly.atom("block", int(str(atom[1])) + AXES) if atom[0] == "block" else None)


def _listed(reasons: list[str]) -> str:
    kept = [reason for reason in dict.fromkeys(reasons) if reason]
    return "; ".join(kept) if kept else "they use no tensor in common"


__all__ = ["Meeting", "Relation", "Touch", "relation", "why_free", "why_wait"]

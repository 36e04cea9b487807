"""Whether some block may change what a statement reads of a tensor, in the phase of the read."""

from __future__ import annotations

from collections.abc import Iterable

from phobos.semantics import ir
from phobos.semantics.cells import Cells, axes_of, cell_of
from phobos.semantics.flow import Flow, Reach, flow_of
from phobos.semantics.grid import has_one_axis
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.twoblocks import Pair
from phobos.semantics.values import Values, statements_in, values_of
from phobos.value import value


@value
class _Writers:
    """What writes a tensor: each meaning once; of those at a point of plain numbers, by that point; and the others."""

    by_meaning: dict[object, ir.Store | ir.Atomic]
    by_cell: dict[tuple[int, ...], list[ir.Store | ir.Atomic]]
    anywhere: list[ir.Store | ir.Atomic]


def _constant_cell(axes: tuple[tuple[Poly, Poly], ...]) -> tuple[int, ...] | None:
    cell = tuple(first.constant for first, length in axes if length.constant == 1)
    return None if len(cell) < len(axes) or None in cell else cell  # type: ignore[return-value]


class PhaseWrites:
    """Answers for one program, each found once."""

    def __init__(self, program: Program) -> None:
        self._values: Values = values_of(program)
        self._flow: Flow = flow_of(program)
        self._writers: dict[str, _Writers] = {}
        self._known: dict[object, bool] = {}
        self._meanings: dict[object, tuple[object, ...]] = {}
        for statement in statements_in(program):
            match statement:
                case ir.Store(access=access) if isinstance(access.base, ir.Tensor):
                    self._note(statement, access)
                case ir.Atomic():
                    self._note(statement, cell_of(statement))
        self._axes = (0,) if has_one_axis(program) else (0, 1, 2)

    def _note(self, statement: ir.Store | ir.Atomic, access: ir.Access) -> None:
        """Of writers that mean the same, the first stands for all."""
        writers = self._writers.setdefault(access.base.name, _Writers({}, {}, []))
        meaning = self._meaning(statement, access)
        if meaning not in writers.by_meaning:
            writers.by_meaning[meaning] = statement
            cell = _constant_cell(axes_of(self._values, access))
            if cell is None:
                writers.anywhere.append(statement)
            else:
                writers.by_cell.setdefault(cell, []).append(statement)

    def _meaning(self, statement: ir.Statement, access: ir.Access) -> tuple[object, ...]:
        """Equal for accesses that touch the same cells in the same rounds of the same phases."""
        key = statement, access
        known = self._meanings.get(key)
        if known is None:
            # The place of an access that was made here (the cell of an atomic) is that of its statement.
            place = self._values.context(statement if isinstance(statement, ir.Atomic) else access)
            axes = tuple((first.key, length.key) for first, length in axes_of(self._values, access))
            known = self._meanings[key] = (axes, id(place), tuple(self._flow.ways(statement).items()))
        return known

    def reach(self, reader: ir.Statement, tensor: ir.Tensor, access: ir.Access | None) -> bool:
        """Whether a block may write, in the phase of the read, a cell of `access` (None: any cell of the tensor)."""
        return self._written(reader, tensor, access, True)

    def reach_others(self, reader: ir.Statement, access: ir.Access) -> bool:
        """The same of writes by other blocks than the one that reads."""
        return isinstance(access.base, ir.Tensor) and self._written(reader, access.base, access, False)

    def _written(self, reader: ir.Statement, tensor: ir.Tensor, access: ir.Access | None, own: bool) -> bool:
        key = (tensor.name, own, reader if access is None else self._meaning(reader, access))
        known = self._known.get(key)
        if known is None:
            writers = self._writers.get(tensor.name)
            known = writers is not None and any(
                self._may_write(reader, access, writer, own) for writer in self._candidates(writers, access)
            )
            self._known[key] = known
        return known

    def _candidates(self, writers: _Writers, access: ir.Access | None) -> Iterable[ir.Store | ir.Atomic]:
        """Those that may touch a cell of `access` at a glance: of points at numbers, the ones of the same numbers."""
        cell = None if access is None else _constant_cell(axes_of(self._values, access))
        if cell is None:
            return writers.by_meaning.values()
        return *writers.by_cell.get(cell, ()), *writers.anywhere

    def _may_write(
        self, reader: ir.Statement, access: ir.Access | None, writer: ir.Store | ir.Atomic, own: bool
    ) -> bool:
        written = self._flow.ways(writer)
        for start, ways in self._flow.ways(reader).items():
            for mine in ways:
                for theirs in written.get(start, ()):
                    if access is None or not self._apart(access, mine, writer, theirs, own):
                        return True
        return False

    def _apart(
        self, access: ir.Access, mine: Reach, writer: ir.Store | ir.Atomic, theirs: Reach, own: bool
    ) -> bool:
        """Whether a cell that is read is none of those written, by whichever block or by the others."""
        written = writer.access if isinstance(writer, ir.Store) else cell_of(writer)
        place = self._values.context(writer.access if isinstance(writer, ir.Store) else writer)
        extents = tuple(self._values.extent(access.base, axis) for axis in range(len(access.subs)))
        pair = Pair(
            self._values,
            Cells(axes_of(self._values, access), extents, self._values.context(access), mine),
            Cells(axes_of(self._values, written), extents, place, theirs),
            lambda atom: False,
            (),
            self._axes,
        )
        return pair.disjoint(alike_too=own)


@fact
def phase_writes_of(program: Program) -> PhaseWrites:
    """What is written in the phases of a program."""
    return PhaseWrites(program)


__all__ = ["PhaseWrites", "phase_writes_of"]

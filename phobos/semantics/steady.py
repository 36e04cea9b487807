"""Whether some block may change what a statement reads of a tensor, in the phase of the read."""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.flow import Flow, Reach, flow_of
from phobos.semantics.grid import has_one_axis
from phobos.semantics.program import Program, fact
from phobos.semantics.twoblocks import Cells, Pair, axes_of, cell_of
from phobos.semantics.values import Values, statements_of, values_of


class PhaseWrites:
    """Answers for one program, each found once."""

    def __init__(self, program: Program) -> None:
        self._values: Values = values_of(program)
        self._flow: Flow = flow_of(program)
        self._writers: dict[str, list[ir.Store | ir.Atomic]] = {}
        self._known: dict[tuple[ir.Statement, object, bool], bool] = {}
        for statement in statements_of(program.body):
            match statement:
                case ir.Store(access=access) if isinstance(access.base, ir.Tensor):
                    self._writers.setdefault(access.base.name, []).append(statement)
                case ir.Atomic(tensor=tensor):
                    self._writers.setdefault(tensor.name, []).append(statement)
        self._axes = (0,) if has_one_axis(program) else (0, 1, 2)

    def reach(self, reader: ir.Statement, tensor: ir.Tensor, access: ir.Access | None) -> bool:
        """Whether a block may write, in the phase of the read, a cell of `access` (None: any cell of the tensor)."""
        return self._written(reader, tensor, access, True)

    def reach_others(self, reader: ir.Statement, access: ir.Access) -> bool:
        """The same of writes by other blocks than the one that reads."""
        return isinstance(access.base, ir.Tensor) and self._written(reader, access.base, access, False)

    def _written(self, reader: ir.Statement, tensor: ir.Tensor, access: ir.Access | None, own: bool) -> bool:
        key = (reader, tensor.name if access is None else access, own)
        known = self._known.get(key)
        if known is None:
            writers = self._writers.get(tensor.name, ())
            known = any(self._may_write(reader, access, writer, own) for writer in writers)
            self._known[key] = known
        return known

    def _may_write(
        self, reader: ir.Statement, access: ir.Access | None, writer: ir.Store | ir.Atomic, own: bool
    ) -> bool:
        starts = self._flow.starts
        for index in self._flow.phases_with(reader) & self._flow.phases_with(writer):
            reached = self._flow.reached(starts[index])
            for mine in reached.get(reader, ()):
                for theirs in reached.get(writer, ()):
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

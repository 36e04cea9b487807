"""Phases: the stretches between grid barriers, through loops and branches.

A phase is named by the barrier it begins at (None: the start of the kernel) for every path that leads to it.
Two accesses can meet in one phase when some path without a barrier joins a common phase start to both.
"""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.flow import Flow, flow_of
from phobos.semantics.program import Program, fact
from phobos.value import value


@value
class Phase:
    """`begins` is a barrier or None; `ends` are the barriers (None: the end of the kernel) it can run into."""

    index: int
    begins: ir.Barrier | None
    ends: tuple[ir.Barrier | None, ...]
    statements: tuple[ir.Statement, ...]


class Phases:
    """All phases of a kernel; `of(statement)` gives those a statement can belong to (several around a loop)."""

    def __init__(self, flow: Flow) -> None:
        found: list[Phase] = []
        self._of: dict[ir.Statement, list[Phase]] = {}
        for index, start in enumerate(flow.starts):
            reached = flow.reached(start)
            begins = start if isinstance(start, ir.Barrier) else None
            phase = Phase(index, begins, flow.ends(start), tuple(reached))
            found.append(phase)
            for statement in reached:
                self._of.setdefault(statement, []).append(phase)
        self.phases: tuple[Phase, ...] = tuple(found)

    def of(self, statement: ir.Statement) -> tuple[Phase, ...]:
        return tuple(self._of.get(statement, ()))


@fact
def phases_of(program: Program) -> Phases:
    """The phases of a kernel, that of its start first."""
    return Phases(flow_of(program))

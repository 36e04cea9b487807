"""Which statements have a say in what a kernel leaves behind, of a kernel without barriers.

Backwards from stores to tensors and atomics: what they are computed from, the decisions and loops that they stand in,
the exits that they lie behind. A variable that is given a value counts where such a statement may still read it.
"""

from __future__ import annotations

from phobos.check.walk import places_of
from phobos.semantics import ir
from phobos.semantics.flow import flow_of
from phobos.semantics.program import Program, fact
from phobos.semantics.reaching import given_by, reaching

NESTS = (ir.For, ir.While, ir.If, ir.Inline)
EXITS = (ir.Leave, ir.Break, ir.Continue)
SILENT = (ir.Evaluate, ir.AssumeUniform)


@fact
def effective(program: Program) -> frozenset[ir.Statement]:
    """The statements without which the tensors might hold something else at the end."""
    flow, given = flow_of(program), reaching(program)
    around = {place.statement: place.inside for place in places_of(program) if place.statement in given}
    readers: dict[ir.Statement, set[ir.Statement]] = {}
    for statement, read in given.items():
        for giver in frozenset().union(*read.values()):
            readers.setdefault(giver, set()).add(statement)
    found: set[ir.Statement] = set()
    work: set[ir.Statement] = set()  # of those found, what does something itself
    waiting: list[ir.Statement] = []
    for statement in around:
        if isinstance(statement, EXITS) or bound_by(statement) is not None:
            waiting.append(statement)
        elif not isinstance(statement, (*NESTS, *SILENT)):
            found.update((statement, *around[statement]))
            work.add(statement)
    changed = True
    while changed:
        changed = False
        for statement in waiting:
            if statement in found:
                continue
            bound = bound_by(statement)
            if bound is None:
                comes_to = not work.isdisjoint(flow.reached(statement))
            else:
                comes_to = not found.isdisjoint(readers.get(statement, ()))
            if comes_to:
                found.update((statement, *around[statement]))
                if bound is not None:
                    work.add(statement)
                changed = True
    return frozenset(found)


def bound_by(statement: ir.Statement) -> ir.Variable | None:
    """The variable that a statement gives a value, all or some of its cells, and does nothing else."""
    return None if isinstance(statement, (ir.For, ir.Atomic)) else given_by(statement)


__all__ = ["bound_by", "effective"]

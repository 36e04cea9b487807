"""Which statements have a say in what a kernel leaves behind, of a kernel without barriers.

Backwards from stores to tensors and atomics: what they are computed from, the decisions and loops that they stand in,
the exits that they lie behind. A variable that is given a value counts where such a statement may still read it, in the
round in which it has come into being.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from phobos.check.walk import all_evaluated, places_of
from phobos.semantics import ir
from phobos.semantics.flow import SAME, Reach, flow_of
from phobos.semantics.program import Program, fact
from phobos.semantics.values import values_of

NESTS = (ir.For, ir.While, ir.If, ir.Inline)
EXITS = (ir.Leave, ir.Break, ir.Continue)
SILENT = (ir.Evaluate, ir.AssumeUniform)


@fact
def effective(program: Program) -> frozenset[ir.Statement]:
    """The statements without which the tensors might hold something else at the end."""
    unreachable, flow = values_of(program).unreachable, flow_of(program)
    around = {place.statement: place.inside for place in places_of(program) if place.statement not in unreachable}
    lives_in = {s.variable: around[s] for s in around if isinstance(s, (ir.Define, ir.DefineView))}
    readers: dict[ir.Variable, set[ir.Statement]] = {}
    for statement in around:
        for variable in _read_by(program, statement):
            readers.setdefault(variable, set()).add(statement)
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
                comes_to = _comes_to(flow.reached(statement), work, ())
            else:
                ends = found & readers.get(bound, set())
                comes_to = any(isinstance(one, ir.While) and one in ends for one in around[statement]) or (
                    bool(ends) and _comes_to(flow.reached(statement), ends, lives_in.get(bound, ()))
                )
            if comes_to:
                found.update((statement, *around[statement]))
                if bound is not None:
                    work.add(statement)
                changed = True
    return frozenset(found)


def _comes_to(
    reached: Mapping[ir.Statement, Sequence[Reach]], ends: set[ir.Statement], within: Sequence[ir.Statement]
) -> bool:
    """Whether one of the ends is reached with no other round begun of the loops given."""
    return any(
        all(how == SAME for loop, how in reach.rounds if loop in within)
        for one in ends
        for reach in reached.get(one, ())
    )


def bound_by(statement: ir.Statement) -> ir.Variable | None:
    """The variable that a statement gives a value, all or some of its cells, and does nothing else."""
    match statement:
        case ir.Define(variable=variable) | ir.DefineView(variable=variable) | ir.Assign(variable=variable):
            return variable
        case ir.Store(access=access) if isinstance(access.base, ir.Variable):
            return access.base
    return None


def _read_by(program: Program, statement: ir.Statement) -> Iterator[ir.Variable]:
    """The variables that a statement goes by, its own earlier value aside. Nothing is stored under a living view."""
    for one in all_evaluated(program)[statement]:
        if isinstance(one, ir.VariableRef):
            yield one.variable
        elif isinstance(one, ir.Load) and isinstance(one.access.base, ir.Variable):
            yield one.access.base
    if isinstance(statement, ir.DefineView) and isinstance(statement.access.base, ir.Variable):
        yield statement.access.base


__all__ = ["bound_by", "effective"]

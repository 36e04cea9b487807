"""Where a value gets to: what is computed from it, and whether that decides what a kernel does.

Forward and without regard to order: a variable that is ever computed from a source counts as computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from phobos.check.walk import all_evaluated, inside, places_of, subscripts
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.value import value

Source = Callable[[ir.Expression], bool]


@value
class Use:
    """An expression that decides what is done. `kind`: "bound", "condition" or "subscript"."""

    kind: str
    statement: ir.Statement
    expression: ir.Expression
    access: ir.Access | None


class Reach:
    """What is computed from the expressions that are a `source`, and from the variables it begins with."""

    def __init__(self, program: Program, source: Source, begin: frozenset[ir.Variable] = frozenset()) -> None:
        self.source = source
        self.variables: set[ir.Variable] = set(begin)
        pairs = list(_flows(program))
        changed = True
        while changed:
            changed = False
            for variable, expression in pairs:
                if variable not in self.variables and self.holds(expression):
                    self.variables.add(variable)
                    changed = True

    def holds(self, expression: ir.Expression) -> bool:
        """Whether the expression is computed from the source."""
        return any(
            self.source(one) or (isinstance(one, ir.VariableRef) and one.variable in self.variables)
            for one in inside(expression)
        )


def _flows(program: Program) -> Iterator[tuple[ir.Variable, ir.Expression]]:
    """Pairs of a variable and an expression that its value comes from."""
    for place in places_of(program):
        match place.statement:
            case ir.Define(variable=variable, value=found) if found is not None:
                yield variable, found
            case ir.Assign(variable=variable, value=found):
                yield variable, found
            case ir.DefineView(variable=variable, access=access):
                for expression in subscripts(access):
                    yield variable, expression
            case ir.For(variable=variable, lo=lo, hi=hi, step=step):
                for expression in (lo, hi, step):
                    yield variable, expression
            case ir.Store(access=access, value=found) if isinstance(access.base, ir.Variable):
                yield access.base, found


def decisions(program: Program) -> Iterator[Use]:
    """Every expression that decides what is done: bounds and steps, conditions, subscripts."""
    for place in places_of(program):
        statement = place.statement
        match statement:
            case ir.For(lo=lo, hi=hi, step=step):
                for expression in (lo, hi, step):
                    yield Use("bound", statement, expression, None)
            case ir.While(condition=condition) | ir.If(condition=condition):
                yield Use("condition", statement, condition, None)
            case ir.Store(access=access) | ir.DefineView(access=access):
                for expression in subscripts(access):
                    yield Use("subscript", statement, expression, access)
            case ir.Atomic(index=index):
                yield Use("subscript", statement, index, None)
        for one in all_evaluated(program)[statement]:
            if isinstance(one, ir.Load):
                for subscript in subscripts(one.access):
                    yield Use("subscript", statement, subscript, one.access)


def atomic_results(program: Program) -> frozenset[ir.Variable]:
    """The variables that hold what an atomic returned."""
    return frozenset(
        place.statement.result
        for place in places_of(program)
        if isinstance(place.statement, ir.Atomic) and place.statement.result is not None
    )

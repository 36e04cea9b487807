"""Where a value gets to: what is computed from it, and whether that decides what a kernel does.

Forward, by the values that may still be in a variable where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from phobos.check.walk import all_evaluated, inside, places_of, subscripts
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.semantics.reaching import given_by, reaching, read_by
from phobos.semantics.walking import expressions_in
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
    """What is computed from the expressions that are a `source`, and from what the statements it begins with give."""

    def __init__(self, program: Program, source: Source, begin: frozenset[ir.Statement] = frozenset()) -> None:
        self.source = source
        self.given = reaching(program)
        self.statements: set[ir.Statement] = set(begin)
        giving = [(one, _flows(one)) for one in self.given if given_by(one) is not None]
        changed = True
        while changed:
            changed = False
            for statement, expressions in giving:
                if statement not in self.statements and self._flows_into(statement, expressions):
                    self.statements.add(statement)
                    changed = True

    def _flows_into(self, statement: ir.Statement, expressions: tuple[ir.Expression, ...]) -> bool:
        if isinstance(statement, ir.Assign) and self._given(statement, statement.variable):
            return True  # `x += 1`
        return any(self.holds(statement, one) for one in expressions)

    def holds(self, statement: ir.Statement, expression: ir.Expression) -> bool:
        """Whether the expression, where the statement evaluates it, is computed from the source."""
        return statement in self.given and any(
            self.source(one) or self._given(statement, read_by(one)) for one in inside(expression)
        )

    def _given(self, statement: ir.Statement, variable: ir.Variable | None) -> bool:
        known = self.given[statement]
        return variable in known and not self.statements.isdisjoint(known[variable])


def _flows(statement: ir.Statement) -> tuple[ir.Expression, ...]:
    """What the value that a statement gives a variable comes from, its own earlier one aside."""
    match statement:
        case ir.DefineView(access=access):
            return subscripts(access)
        case ir.Atomic():
            return ()  # it is what other blocks made of it
    return expressions_in(statement)


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


def atomics_with_results(program: Program) -> frozenset[ir.Statement]:
    """The atomics of which somebody may use what they returned."""
    found = (place.statement for place in places_of(program))
    return frozenset(one for one in found if isinstance(one, ir.Atomic) and one.result is not None)

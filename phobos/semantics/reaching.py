"""Which statements may have given a variable the value that a statement reads: definitions that reach a use.

A value given to the whole variable ends those before it; some cells of a tile, or `x += 1`, do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.semantics import ir
from phobos.semantics.program import Program, fact
from phobos.semantics.values import values_of
from phobos.semantics.walking import all_evaluated

Given = frozenset[ir.Statement]
Env = dict[ir.Variable, Given]
NOTHING: Given = frozenset()


def given_by(statement: ir.Statement) -> ir.Variable | None:
    """The variable that a statement gives a value, all or some of its cells."""
    match statement:
        case ir.Define(variable=variable) | ir.DefineView(variable=variable) | ir.Assign(variable=variable):
            return variable
        case ir.For(variable=variable) | ir.Atomic(result=variable):
            return variable
        case ir.Store(access=access) if isinstance(access.base, ir.Variable):
            return access.base
    return None


def read_by(expression: ir.Expression) -> ir.Variable | None:
    """The variable that an expression itself reads, all or some of its cells."""
    if isinstance(expression, ir.VariableRef):
        return expression.variable
    if isinstance(expression, ir.Load) and isinstance(expression.access.base, ir.Variable):
        return expression.access.base
    return None


@fact
def reaching(program: Program) -> dict[ir.Statement, dict[ir.Variable, Given]]:
    """For each statement that runs, of each variable that it reads, the statements that may have given its value."""
    walk = _Walk(program)
    walk.block(program.body, {})
    return walk.found


def _reads(program: Program, statement: ir.Statement) -> Iterator[ir.Variable]:
    for one in all_evaluated(program)[statement]:
        if (variable := read_by(one)) is not None:
            yield variable
    match statement:
        case ir.DefineView(access=access) if isinstance(access.base, ir.Variable):
            yield access.base
        case ir.Assign(variable=variable, op=str()):
            yield variable


def _join(*ways: Env | None) -> Env | None:
    """What may be so after one of several ways; None where none comes out."""
    alive = [way for way in ways if way is not None]
    if len(alive) < 2:
        return dict(alive[0]) if alive else None
    joined: Env = {}
    for way in alive:
        for variable, given in way.items():
            joined[variable] = joined.get(variable, NOTHING) | given
    return joined


class _Walk:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.dead = values_of(program).unreachable
        self.found: dict[ir.Statement, dict[ir.Variable, Given]] = {}
        self.breaks: list[list[Env]] = []
        self.continues: list[list[Env]] = []
        self.leaves: list[list[Env]] = []

    def block(self, block: ir.Block, env: Env | None) -> Env | None:
        """What holds behind a block; None where no way leads there. The environment given is used up."""
        for statement in block.statements:
            if env is None or statement in self.dead:
                return None
            env = self._statement(statement, env)
        return env

    def _read(self, statement: ir.Statement, env: Env) -> None:
        known = self.found.setdefault(statement, {})
        for variable in _reads(self.program, statement):
            known[variable] = known.get(variable, NOTHING) | env.get(variable, NOTHING)

    def _statement(self, statement: ir.Statement, env: Env) -> Env | None:
        if isinstance(statement, ir.While):
            return self._loop(statement, env)
        self._read(statement, env)
        match statement:
            case ir.If(then=then, otherwise=otherwise):
                return _join(self.block(then, dict(env)), self.block(otherwise, env))
            case ir.For():
                return self._loop(statement, env)
            case ir.Inline(body=body):
                self.leaves.append([])
                end = self.block(body, env)
                return _join(end, *self.leaves.pop())
            case ir.Break():
                self.breaks[-1].append(env)
                return None
            case ir.Continue():
                self.continues[-1].append(env)
                return None
            case ir.Leave(leaves_kernel=of_kernel):
                if not of_kernel:
                    self.leaves[-1].append(env)
                return None
        variable = given_by(statement)
        if variable is not None:
            before = env.get(variable, NOTHING) if isinstance(statement, ir.Store) else NOTHING
            env[variable] = before | {statement}
        return env

    def _loop(self, statement: ir.For | ir.While, env: Env) -> Env | None:
        head, behind = env, None
        while True:
            self.breaks.append([])
            self.continues.append([])
            start: Env | None = dict(head)
            if isinstance(statement, ir.While):
                start = self.block(statement.prelude, start)
                if start is not None:
                    self._read(statement, start)
            elif start is not None:
                start[statement.variable] = frozenset((statement,))
            over = head if isinstance(statement, ir.For) else start
            over = None if over is None else dict(over)
            end = None if start is None else self.block(statement.body, start)
            behind = _join(over, *self.breaks.pop())
            again = _join(head, end, *self.continues.pop())
            assert again is not None
            if again == head:
                return behind
            head = again


__all__ = ["given_by", "reaching", "read_by"]

"""Which statements may have given a variable the value that a statement reads: definitions that reach a use.

A value given to the whole variable ends those before it; some cells of a tile, or `x += 1`, do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from phobos.semantics import ir
from phobos.semantics.program import Program, fact
from phobos.semantics.values import values_of
from phobos.semantics.walking import all_evaluated, blocks_of, statements_in

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


def _lives_of(program: Program) -> dict[ir.Variable, tuple[int, int]]:
    """The first and the last statement, by their order in the text, that give or read each variable."""
    lives: dict[ir.Variable, tuple[int, int]] = {}
    for at, statement in enumerate(statements_in(program)):
        variables = {*_reads(program, statement), given_by(statement)}
        for variable in variables:
            if variable is not None:
                lives[variable] = lives.get(variable, (at, at))[0], at
    return lives


def _join(variables: Iterable[ir.Variable], *ways: Env | None) -> Env | None:
    """What may be so after one of several ways, which gave these variables values; None where none comes out."""
    alive = [way for way in ways if way is not None]
    if not alive:
        return None
    joined = dict(alive[0])
    if len(alive) > 1:
        for variable in variables:
            given = NOTHING.union(*[way.get(variable, NOTHING) for way in alive])
            if given:
                joined[variable] = given
    return joined


class _Walk:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.dead = values_of(program).unreachable
        self.found: dict[ir.Statement, dict[ir.Variable, Given]] = {}
        self.breaks: list[list[Env]] = []
        self.continues: list[list[Env]] = []
        self.leaves: list[list[Env]] = []
        self.inside: dict[ir.Statement, frozenset[ir.Variable]] = {}  # what its blocks give values that outlive it
        self.around: dict[ir.Statement, Env] = {}
        self._lives = _lives_of(program)
        self._count = 0  # of the statements noted
        self._note(program.body)

    def _note(self, block: ir.Block) -> set[ir.Variable]:
        found: set[ir.Variable] = set()
        for statement in block.statements:
            if (variable := given_by(statement)) is not None:
                found.add(variable)
            at = self._count
            self._count += 1
            if blocks := blocks_of(statement):
                given = set[ir.Variable]().union(*map(self._note, blocks))
                lives, last = self._lives, self._count - 1
                self.inside[statement] = frozenset(v for v in given if lives[v][0] < at or lives[v][1] > last)
                found |= self.inside[statement]
        return found

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
                return _join(self.inside[statement], self.block(then, dict(env)), self.block(otherwise, env))
            case ir.For():
                return self._loop(statement, env)
            case ir.Inline(body=body):
                self.leaves.append([])
                end = self.block(body, env)
                return _join(self.inside[statement], end, *self.leaves.pop())
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
        inside = self.inside[statement]
        # What came around when the loop was walked last, on the way of a loop around it, does so again.
        head = _join(inside, env, self.around.get(statement))
        behind: Env | None = None
        assert head is not None
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
            behind = _join(inside, over, *self.breaks.pop())
            around = _join(inside, end, *self.continues.pop())
            again = _join(inside, head, around)
            assert again is not None
            if all(again.get(variable, NOTHING) == head.get(variable, NOTHING) for variable in inside):
                return behind
            head = again
            if around is not None:
                self.around[statement] = around


__all__ = ["given_by", "reaching", "read_by"]

"""Uniformity: which values are the same for all blocks of the grid, and why not where they are not.

The walk over the statements: control dependence, loop back edges to a fixed point, phase by phase. The level of an
expression is worked out in `expression_levels`, why blocks part at a barrier in `divergences`.
"""

from __future__ import annotations

from collections.abc import Sequence

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.conditions import Truth
from phobos.semantics.divergences import Decisions, Divergence, Split
from phobos.semantics.expression_levels import Binding, Env, ExpressionLevels
from phobos.semantics.levels import CONSTANT, UNIFORM, Level, Origin, Variation, join
from phobos.semantics.poly import Atom
from phobos.semantics.program import Program, fact
from phobos.semantics.values import blocks_of, statements_of
from phobos.value import value


@value
class Assumption:
    """One `assume uniform(x)`: the level `x` would have had; at UNIFORM or below it is not needed."""

    statement: ir.AssumeUniform
    level: Level

    @property
    def needed(self) -> bool:
        return self.level > Level.UNIFORM


@value
class _Left:
    """A path that left a scope early: with what it knew, and the first split that not all blocks took with it."""

    statement: ir.Statement
    env: Env
    split: Split | None


@value
class _Scope:
    """What an exit can leave. `depth`: how many splits were in force when it was entered."""

    kind: str  # loop inline kernel
    depth: int
    breaks: list[_Left]
    continues: list[_Left]
    leaves: list[_Left]


MOST_PASSES = 60


class Uniformity(ExpressionLevels):
    """Levels and reasons for one program."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.divergences: tuple[Divergence, ...] = ()  # at most one per barrier call and call chain
        self.assumptions: tuple[Assumption, ...] = ()
        self.controls: dict[ir.Statement, Variation] = {}
        self.decides: dict[ir.Statement, Variation] = {}  # of the condition or trips of an `if` or loop
        self._body = program.body
        self._decisions = Decisions(program)
        self._heads: dict[tuple[ir.Statement, ir.Variable], Binding] = {}
        self._late: dict[ir.Statement, dict[ir.Statement, Split]] = {}
        self._scopes: list[_Scope] = []
        self._found: dict[ir.Barrier, list[Split]] = {}
        self._assigned: dict[ir.Statement, frozenset[ir.Variable]] = {}
        self._run()

    def control(self, statement: ir.Statement) -> Level:
        """Whether blocks agree on reaching a statement."""
        known = self.controls.get(statement)
        return Level.UNIFORM if known is None else known.level

    def decision(self, statement: ir.Statement) -> Level:
        """Of the condition of an `if` or `while`, of the trip count of a `for`."""
        known = self.decides.get(statement)
        return Level.UNIFORM if known is None else known.level

    def _run(self) -> None:
        for _ in range(MOST_PASSES):
            self._pass()
            if not self.changed:
                break
        if self.learnt:  # else another pass would find the same
            self._pass()
        self.divergences = self._decisions.divergences(self._found)
        self.assumptions = tuple(Assumption(s, level) for s, level in self.assumed.items())

    def _pass(self) -> None:
        self.changed = self.learnt = False
        self._found.clear()
        self.variations.clear()
        self.controls.clear()
        self.decides.clear()
        self._scopes = [_Scope("kernel", 0, [], [], [])]
        self.believed = set()
        self._block(self._body, {}, [])

    # --- statements -------------------------------------------------------------------------------

    def _block(self, block: ir.Block, env: Env, splits: list[Split]) -> tuple[bool, list[Split]]:
        """Run the statements; whether control falls out, and the exits (as splits) that outlive the block."""
        splits = list(splits)
        exits: dict[ir.Statement, Split] = {}
        for statement in block.statements:
            if statement in self.values.unreachable:
                return False, list(exits.values())
            self.controls[statement] = splits[0].variation if splits else UNIFORM
            falls, left = self._statement(statement, env, splits)
            for split in left:
                exits.setdefault(split.statement, split)
                if all(split.statement is not known.statement for known in splits):
                    splits.append(split)
            if not falls:
                return False, list(exits.values())
            if not isinstance(statement, ir.AssumeUniform):
                self.believed.clear()
        return True, list(exits.values())

    def _statement(self, statement: ir.Statement, env: Env, splits: list[Split]) -> tuple[bool, list[Split]]:
        self.at = statement
        match statement:
            case ir.Define(variable=variable, value=initial):
                self.bind(env, variable, CONSTANT if initial is None else self.of(initial, env))
            case ir.DefineView(variable=variable, access=access):
                self.views[variable] = access
                self.bind(env, variable, self.subscripts(access, env))
            case ir.Assign(variable=variable, op=op, value=new):
                variation = self.of(new, env)
                if op is not None and variable in env:
                    variation = join(env[variable].variation, variation)
                self.bind(env, variable, variation)
            case ir.Store(access=access, value=stored):
                variation = join(self.subscripts(access, env), self.of(stored, env))
                if isinstance(access.base, ir.Variable) and access.base in env:
                    self.bind(env, access.base, join(env[access.base].variation, variation))
            case ir.Evaluate(value=evaluated):
                self.of(evaluated, env)
            case ir.AssumeUniform(value=assumed):
                self.assume(statement, assumed, env)
            case ir.Atomic(tensor=tensor, index=index, operands=operands, result=result):
                self.of(index, env)
                for operand in operands:
                    self.of(operand, env)
                if result is not None:
                    origin = Origin(
                        "atomic",
                        statement.span,
                        statement.calls,
                        f"an atomic on `{tensor.name}` gives each block its own answer",
                        False,
                    )
                    self.bind(env, result, Variation(Level.VARYING, False, origin, None, 1, False))
            case ir.UnsupportedCall(arguments=arguments):
                for argument in arguments:
                    self.of(argument, env)
            case ir.Barrier():
                if splits:
                    self._found[statement] = list(splits)
            case ir.If():
                return self._if(statement, env, splits)
            case ir.For() | ir.While():
                return True, self._loop(statement, env, splits)
            case ir.Inline(body=body):
                scope = _Scope("inline", len(splits), [], [], [])
                self._scopes.append(scope)
                falls, left = self._block(body, env, splits)
                self._scopes.pop()
                falls = self._rejoin(env, falls, scope.leaves)
                ended = {id(exit_.statement) for exit_ in scope.leaves}
                return falls, [split for split in left if id(split.statement) not in ended]
            case ir.Break() | ir.Continue() | ir.Leave():
                return False, self._exit(statement, env, splits)
        return True, []

    def _exit(self, statement: ir.Statement, env: Env, splits: list[Split]) -> list[Split]:
        match statement:
            case ir.Break() | ir.Continue():
                kind = "loop"
            case ir.Leave(leaves_kernel=leaves_kernel):
                kind = "kernel" if leaves_kernel else "inline"
            case _:
                raise AssertionError(statement)
        scope = next(s for s in reversed(self._scopes) if s.kind == kind)
        inside = splits[scope.depth :]
        split = None
        if inside:
            split = Split("exit", statement, statement.span, statement.calls, inside[0].variation, inside[0].parting)
        left = _Left(statement, dict(env), inside[0] if inside else None)
        match statement:
            case ir.Break():
                scope.breaks.append(left)
            case ir.Continue():
                scope.continues.append(left)
            case _:
                scope.leaves.append(left)
        return [] if split is None else [split]

    def _rejoin(self, env: Env, falls: bool, exits: Sequence[_Left]) -> bool:
        """Where early exits meet the path that went on: variables they disagree on vary if blocks parted."""
        paths = list(exits)
        if not falls:
            if not paths:
                return False
            first, *paths = paths
            mine = first.env
            cause = first.split
            env.clear()
            env.update(mine)
        else:
            cause = None
        for path in paths:
            split = path.split or cause
            for variable, binding in list(env.items()):
                other = path.env.get(variable)
                if other is None or other is binding:
                    continue
                if split is not None:
                    joined = self._assigned_under(variable, split.variation, binding.variation, other.variation)
                else:
                    joined = join(binding.variation, other.variation)
                self.bind(env, variable, joined)
        return True

    def _assigned_under(self, variable: ir.Variable, why: Variation, one: Variation, other: Variation) -> Variation:
        stronger = join(one, other)
        if stronger.level > Level.UNIFORM:
            return stronger
        name = f"`{variable.name}`" if variable.name else "the result"
        origin = Origin(
            "assigned-under",
            variable.span,
            variable.calls,
            f"{name} is set where not every block comes by",
            why.certain,
        )
        return Variation(max(Level.VARYING, why.level), why.certain, origin, why, why.length + 1, False)

    def _if(self, statement: ir.If, env: Env, splits: list[Split]) -> tuple[bool, list[Split]]:
        decided = self._decided(statement, statement.condition, env)
        self.decides[statement] = decided
        inner = splits
        if decided.level > Level.UNIFORM:
            inner = [*splits, Split("branch", statement, statement.keyword, statement.calls, decided, statement)]
        condition = self.values.condition(statement.condition)
        then_env, else_env = dict(env), dict(env)
        then_falls = else_falls = False
        then_left: list[Split] = []
        else_left: list[Split] = []
        if not (isinstance(condition, Truth) and not condition.value):
            then_falls, then_left = self._block(statement.then, then_env, inner)
        if not (isinstance(condition, Truth) and condition.value):
            else_falls, else_left = self._block(statement.otherwise, else_env, inner)
        left = [split for split in (*then_left, *else_left) if split.kind == "exit"]
        if then_falls and else_falls:
            for variable in list(env):
                one, other = then_env[variable], else_env[variable]
                if one is other:
                    env[variable] = one
                elif decided.level > Level.UNIFORM:
                    self.bind(env, variable, self._assigned_under(variable, decided, one.variation, other.variation))
                else:
                    self.bind(env, variable, join(one.variation, other.variation))
            return True, left
        if then_falls or else_falls:
            chosen = then_env if then_falls else else_env
            for variable in list(env):
                env[variable] = chosen[variable]
            return True, left
        return False, left

    def _loop(self, statement: ir.For | ir.While, env: Env, splits: list[Split]) -> list[Split]:
        assigned = [v for v in self._assigned_in(statement) if v in env]
        entry = {v: env[v] for v in assigned}
        for variable in assigned:
            self._join_head(statement, variable, entry[variable].variation)
            env[variable] = self._heads[statement, variable]
        trips: Variation | None = None
        if isinstance(statement, ir.For):
            trips = self.trips(statement, env)
            self.decides[statement] = trips
        scope = _Scope("loop", len(splits), [], [], [])
        inner = list(splits)
        if trips is not None and trips.level > Level.UNIFORM:
            inner.append(Split("trip", statement, statement.keyword, statement.calls, trips, statement))
        late = self._late.setdefault(statement, {})
        inner += late.values()
        body = dict(env)
        self._scopes.append(scope)
        falls = True
        left: list[Split] = []
        if isinstance(statement, ir.While):
            known = self._late.get(statement, {})
            probe = self._heads.get((statement, _CONDITION))
            if probe is not None and probe.variation.level > Level.UNIFORM:
                inner = [
                    *splits,
                    Split("trip", statement, statement.keyword, statement.calls, probe.variation, statement),
                    *known.values(),
                ]
            falls, left = self._block(statement.prelude, body, inner)
            self.at = statement
            decided = self._decided(statement, statement.condition, body)
            self.decides[statement] = decided
            self._join_head(statement, _CONDITION, decided)
            trips = decided
            head_env = dict(body)
        else:
            self.bind(body, statement.variable, self.walked(statement, env))
            head_env = env
        if falls:
            falls, more = self._block(statement.body, body, inner)
            left = [*left, *more]
        self._scopes.pop()
        falls = self._rejoin(body, falls, scope.continues)
        if falls:
            for variable in assigned:
                self._join_head(statement, variable, body[variable].variation)
        outliving = [split for split in left if split.kind == "exit"]
        ended = {id(exit_.statement) for exit_ in scope.continues}
        breaks = {id(exit_.statement) for exit_ in scope.breaks}
        outliving = [split for split in outliving if id(split.statement) not in ended]
        for split in outliving:
            if split.statement not in late and split.statement is not statement:
                late[split.statement] = split
                self.changed = self.learnt = True
        self._behind(statement, env, head_env, assigned, trips, scope.breaks)
        return [split for split in outliving if id(split.statement) not in breaks]

    def _behind(
        self,
        statement: ir.For | ir.While,
        env: Env,
        head: Env,
        assigned: Sequence[ir.Variable],
        trips: Variation | None,
        breaks: Sequence[_Left],
    ) -> None:
        """The variables behind a loop: if blocks leave it at different rounds, what it assigns varies."""
        cause: Variation | None = trips if trips is not None and trips.level > Level.UNIFORM else None
        if cause is None:
            cause = next((b.split.variation for b in breaks if b.split is not None), None)
        for variable in assigned:
            variation = head[variable].variation if variable in head else env[variable].variation
            for path in breaks:
                if variable in path.env:
                    variation = join(variation, path.env[variable].variation)
            if cause is not None and variation.level <= Level.UNIFORM:
                name = f"`{variable.name}`" if variable.name else "the result"
                origin = Origin(
                    "loop-exit",
                    variable.span,
                    variable.calls,
                    f"{name} changes in a loop that blocks leave at different rounds",
                    cause.certain,
                )
                variation = Variation(cause.level, cause.certain, origin, cause, cause.length + 1, False)
            self.bind(env, variable, variation)
        loop = self.values.loops.get(statement)
        if loop is not None:
            level = Level.UNIFORM if cause is None else cause.level
            bounds = (loop.lo, loop.hi, loop.step)
            keys = tuple(bound.key for bound in bounds if bound is not None)
            atom: Atom = ("trips", *(keys if len(keys) == 3 else (loop.index,)))
            if self.atoms.get(atom) != level:
                self.changed = self.changed or self.atoms.get(atom, Level.CONSTANT) < level
                self.learnt = True
                self.atoms[atom] = level

    def _join_head(self, statement: ir.Statement, variable: ir.Variable, variation: Variation) -> None:
        known = self._heads.get((statement, variable))
        if (
            known is None
            or variation.level > known.variation.level
            or (variation.level == known.variation.level and variation.certain and not known.variation.certain)
        ):
            self._heads[statement, variable] = Binding(variation)
            self.changed = self.learnt = True

    def _assigned_in(self, statement: ir.For | ir.While) -> frozenset[ir.Variable]:
        known = self._assigned.get(statement)
        if known is None:
            found: dict[ir.Variable, None] = {}
            for block in blocks_of(statement):
                for inner in statements_of(block):
                    match inner:
                        case ir.Assign(variable=variable):
                            found[variable] = None
                        case ir.Store(access=access) if isinstance(access.base, ir.Variable):
                            found[access.base] = None
            known = frozenset(found)
            self._assigned[statement] = known
        return known

    # --- decisions --------------------------------------------------------------------------------

    def _decided(self, statement: ir.Statement, expression: ir.Expression, env: Env) -> Variation:
        """The variation of a condition, judged by its meaning where that is known."""
        variation = self.of(expression, env)
        if variation.level <= Level.UNIFORM:
            return variation
        condition = self.values.condition(expression)
        if self.level_of_condition(condition) <= Level.UNIFORM:
            return UNIFORM
        return UNIFORM if self._decisions.settled(statement, condition) else variation


_CONDITION = ir.Variable("", "temp", ir.ScalarT("bool"), Span(None, 0, 0), ())


@fact
def uniformity_of(program: Program) -> Uniformity:
    """The uniformity of every value and place of a program."""
    return Uniformity(program)

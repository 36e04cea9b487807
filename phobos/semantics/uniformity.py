"""Uniformity: which values are the same for all blocks of the grid, and why not where they are not.

Lattice: CONSTANT < UNIFORM < VARYING < LANE. Control dependence, loop back edges to a fixed point, phase by
phase; every varying value keeps a pointer to what made it vary, and `why` walks those pointers.

Values that have a polynomial are judged by its atoms, so `p - p` is uniform and `range(p, p + 8)` has uniform
trips, however they were spelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.conditions import All, AnyOf, Compare, Condition, Truth, negation, opaques, polys
from phobos.semantics.flow import Flow, flow_of
from phobos.semantics.grid import NAMES, has_one_axis
from phobos.semantics.knowledge import poly_of_key
from phobos.semantics.masks import sure_grid_facts
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.steady import phase_writes_of
from phobos.semantics.traces import parting_of, parts_at
from phobos.semantics.values import (
    Context,
    Values,
    blocks_of,
    children_of,
    is_bool,
    is_integer,
    statements_in,
    statements_of,
    values_of,
)
from phobos.semantics.variation import Apart, condition_tells_apart, trips_tell_apart
from phobos.value import value


class Level(IntEnum):
    CONSTANT = 0
    UNIFORM = 1
    VARYING = 2
    LANE = 3


@value
class Origin:
    """What brought variation in. `kind`: "block", "load", "atomic", "thread", "assigned-under", "loop-exit".

    `certain`: index arithmetic alone tells two blocks apart (E); otherwise loaded data or the order of atomics (W).
    """

    kind: str
    span: Span
    calls: tuple[Span, ...]
    message: str  # "`p` is the block index", "`X` is written by other blocks in this phase", ...
    certain: bool


@value
class Divergence:
    """Why a barrier is not reached by all blocks alike.

    `kind`: "branch" (PH203), "exit" (PH204), "trip" (PH205), "arms" (PH215). `construct` is the keyword of the
    `if`/`for`/`while`, or the exit statement. `others` are the further barriers concerned ("arms"). `ground`: "witness"
    (index arithmetic parts the blocks of some launch), "data" (what is loaded, or an atomic's answer, may part them) or
    "none" (index arithmetic might, and no launch was found in which it does).
    """

    barrier: ir.Barrier
    kind: str
    construct: Span
    construct_calls: tuple[Span, ...]
    chain: tuple[Origin, ...]  # from the condition's identifier to the origin
    ground: str
    others: tuple[ir.Barrier, ...]

    @property
    def certain(self) -> bool:
        return self.ground == "witness"


@value
class Assumption:
    """One `assume uniform(x)`: the level `x` would have had; at UNIFORM or below it is not needed."""

    statement: ir.AssumeUniform
    level: Level

    @property
    def needed(self) -> bool:
        return self.level > Level.UNIFORM


@value
class Variation:
    """A level with its reason: one step, and the step that it came from. `length` counts the steps.

    `reference`: the step only names a variable that holds the variation.
    """

    level: Level
    certain: bool
    origin: Origin | None
    because: Variation | None
    length: int
    reference: bool

    def chain(self) -> tuple[Origin, ...]:
        found: list[Origin] = []
        at: Variation | None = self
        while at is not None:
            if at.origin is not None:
                found.append(at.origin)
            at = at.because
        return tuple(found)


_SAME_EVERYWHERE = frozenset({ir.IntLiteral, ir.FloatLiteral, ir.BoolLiteral, ir.ConstantRef, ir.Error})
_SAME_IN_A_LAUNCH = frozenset({ir.DimRef, ir.ParamRef, ir.GridExtent, ir.TensorRef})
CONSTANT = Variation(Level.CONSTANT, False, None, None, 0, False)
UNIFORM = Variation(Level.UNIFORM, False, None, None, 0, False)


class Uniformity:
    """Levels and reasons for one program."""

    def __init__(self) -> None:
        self.divergences: tuple[Divergence, ...] = ()  # at most one per barrier call and call chain
        self.assumptions: tuple[Assumption, ...] = ()
        self.variations: dict[object, Variation] = {}  # of expressions and variables
        self.controls: dict[ir.Statement, Variation] = {}
        self.atoms: dict[Atom, Level] = {}
        self.decides: dict[ir.Statement, Variation] = {}  # of the condition or trips of an `if` or loop
        self.one_axis = False

    def level(self, what: ir.Expression | ir.Variable) -> Level:
        """Of an expression where it stands; of a variable over its life (the highest it takes)."""
        known = self.variations.get(what)
        return Level.CONSTANT if known is None else known.level

    def why(self, what: ir.Expression | ir.Variable) -> tuple[Origin, ...]:
        """The shortest chain from a varying value to its origin; empty when it does not vary."""
        known = self.variations.get(what)
        return () if known is None or known.level <= Level.UNIFORM else known.chain()

    def control(self, statement: ir.Statement) -> Level:
        """Whether blocks agree on reaching a statement."""
        known = self.controls.get(statement)
        return Level.UNIFORM if known is None else known.level

    def decision(self, statement: ir.Statement) -> Level:
        """Of the condition of an `if` or `while`, of the trip count of a `for`."""
        known = self.decides.get(statement)
        return Level.UNIFORM if known is None else known.level

    def level_of_poly(self, poly: Poly) -> Level:
        """The level of a value, by its atoms."""
        level = Level.CONSTANT
        for atom in poly.atoms:
            level = max(level, self.level_of_atom(atom))
        return level

    def level_of_atom(self, atom: Atom) -> Level:
        match atom[0]:
            case "block":
                return Level.UNIFORM if self.one_axis and atom[1] != 0 else Level.VARYING
            case "dim" | "param" | "blocks" | "round":
                return Level.UNIFORM
            case "const":
                return Level.CONSTANT
            case "thread":
                return Level.LANE
            case "div" | "min" | "max":
                return max(self.level_of_poly(poly_of_key(atom[1])), self.level_of_poly(poly_of_key(atom[2])))
            case "op":
                return max(self.level_of_poly(poly_of_key(atom[2])), self.level_of_poly(poly_of_key(atom[3])))
            case "wrap":
                return self.level_of_poly(poly_of_key(atom[2]))
            case "trips" if len(atom) == 4 and atom not in self.atoms:
                return max(Level.UNIFORM, *(self.level_of_poly(poly_of_key(key)) for key in atom[1:]))
        return self.atoms.get(atom, Level.VARYING)

    def level_of_condition(self, condition: Condition) -> Level:
        level = Level.CONSTANT
        for poly in polys(condition):
            level = max(level, self.level_of_poly(poly))
        for opaque in opaques(condition):
            level = max(level, self.level_of_opaque(opaque.key, opaque.expression))
        return level

    def level_of_opaque(self, key: tuple[object, ...], expression: ir.Expression | None) -> Level:
        if key[0] == "param":
            return Level.UNIFORM
        known = self.variations.get(key)
        if known is None and expression is not None:
            known = self.variations.get(expression)
        return Level.VARYING if known is None else known.level


@value
class _Binding:
    """One assignment of a variable: two paths agree on a variable when they hold the same binding."""

    variation: Variation


_Env = dict[ir.Variable, _Binding]


@value
class _Split:
    """A construct at which blocks part. `kind`: "branch", "trip" or "exit"."""

    kind: str
    statement: ir.Statement
    construct: Span
    calls: tuple[Span, ...]
    variation: Variation
    parting: ir.Statement  # the `if` or loop whose decision parts them


@value
class _Left:
    """A path that left a scope early: with what it knew, and the first split that not all blocks took with it."""

    statement: ir.Statement
    env: _Env
    split: _Split | None


@value
class _Scope:
    """What an exit can leave. `depth`: how many splits were in force when it was entered."""

    kind: str  # loop inline kernel
    depth: int
    breaks: list[_Left]
    continues: list[_Left]
    leaves: list[_Left]


MOST_PASSES = 60


class _Analysis(Uniformity):
    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.one_axis = has_one_axis(program)
        self.values: Values = values_of(program)
        self.flow: Flow = flow_of(program)
        self._writes = phase_writes_of(program)
        self._limits = sure_grid_facts(program)
        self._heads: dict[tuple[ir.Statement, ir.Variable], _Binding] = {}
        self._late: dict[ir.Statement, dict[ir.Statement, _Split]] = {}
        self._changed = False  # what this pass found may change what the next one finds
        self._learnt = False  # or at least this pass knows more than it began with
        self._scopes: list[_Scope] = []
        self._found: dict[ir.Barrier, list[_Split]] = {}
        self._assumed: dict[ir.AssumeUniform, Level] = {}
        self._believed: set[object] = set()
        self._assumed_atoms: set[Atom] = set()
        self._certain: dict[object, bool] = {}
        self._examples: dict[object, Apart | None] = {}
        self._settling: dict[ir.Statement, bool] = {}
        self._at: ir.Statement | None = None
        self._assigned: dict[ir.Statement, frozenset[ir.Variable]] = {}
        self._views: dict[ir.Variable, ir.Access] = {}

    def run(self) -> None:
        for _ in range(MOST_PASSES):
            self._pass()
            if not self._changed:
                break
        if self._learnt:  # else another pass would find the same
            self._pass()
        self.divergences = self._divergences()
        self.assumptions = tuple(Assumption(s, level) for s, level in self._assumed.items())

    def _pass(self) -> None:
        self._changed = self._learnt = False
        self._found.clear()
        self.variations.clear()
        self.controls.clear()
        self.decides.clear()
        self._scopes = [_Scope("kernel", 0, [], [], [])]
        self._believed = set()
        self._block(self.program.body, {}, [])

    # --- statements -------------------------------------------------------------------------------

    def _block(self, block: ir.Block, env: _Env, splits: list[_Split]) -> tuple[bool, list[_Split]]:
        """Run the statements; whether control falls out, and the exits (as splits) that outlive the block."""
        splits = list(splits)
        exits: dict[ir.Statement, _Split] = {}
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
                self._believed.clear()
        return True, list(exits.values())

    def _statement(
        self, statement: ir.Statement, env: _Env, splits: list[_Split]
    ) -> tuple[bool, list[_Split]]:
        self._at = statement
        match statement:
            case ir.Define(variable=variable, value=initial):
                self._set(env, variable, CONSTANT if initial is None else self._of(initial, env))
            case ir.DefineView(variable=variable, access=access):
                self._views[variable] = access
                self._set(env, variable, self._subscripts(access, env))
            case ir.Assign(variable=variable, op=op, value=new):
                variation = self._of(new, env)
                if op is not None and variable in env:
                    variation = _join(env[variable].variation, variation)
                self._set(env, variable, variation)
            case ir.Store(access=access, value=stored):
                variation = _join(self._subscripts(access, env), self._of(stored, env))
                if isinstance(access.base, ir.Variable) and access.base in env:
                    self._set(env, access.base, _join(env[access.base].variation, variation))
            case ir.Evaluate(value=evaluated):
                self._of(evaluated, env)
            case ir.AssumeUniform(value=assumed):
                self._assume(statement, assumed, env)
            case ir.Atomic(tensor=tensor, index=index, operands=operands, result=result):
                self._of(index, env)
                for operand in operands:
                    self._of(operand, env)
                if result is not None:
                    origin = Origin(
                        "atomic", statement.span, statement.calls,
                        f"an atomic on `{tensor.name}` gives each block its own answer", False,
                    )
                    self._set(env, result, Variation(Level.VARYING, False, origin, None, 1, False))
            case ir.UnsupportedCall(arguments=arguments):
                for argument in arguments:
                    self._of(argument, env)
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

    def _set(self, env: _Env, variable: ir.Variable, variation: Variation) -> None:
        env[variable] = _Binding(variation)
        known = self.variations.get(variable)
        if known is None or variation.level > known.level:
            self.variations[variable] = variation

    def _exit(self, statement: ir.Statement, env: _Env, splits: list[_Split]) -> list[_Split]:
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
            split = _Split("exit", statement, statement.span, statement.calls, inside[0].variation, inside[0].parting)
        left = _Left(statement, dict(env), inside[0] if inside else None)
        match statement:
            case ir.Break():
                scope.breaks.append(left)
            case ir.Continue():
                scope.continues.append(left)
            case _:
                scope.leaves.append(left)
        return [] if split is None else [split]

    def _rejoin(self, env: _Env, falls: bool, exits: Sequence[_Left]) -> bool:
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
                    joined = _join(binding.variation, other.variation)
                self._set(env, variable, joined)
        return True

    def _assigned_under(
        self, variable: ir.Variable, why: Variation, one: Variation, other: Variation
    ) -> Variation:
        stronger = _join(one, other)
        if stronger.level > Level.UNIFORM:
            return stronger
        name = f"`{variable.name}`" if variable.name else "the result"
        origin = Origin(
            "assigned-under", variable.span, variable.calls,
            f"{name} is set where not every block comes by", why.certain,
        )
        return Variation(max(Level.VARYING, why.level), why.certain, origin, why, why.length + 1, False)

    def _if(self, statement: ir.If, env: _Env, splits: list[_Split]) -> tuple[bool, list[_Split]]:
        decided = self._decided(statement, statement.condition, env)
        self.decides[statement] = decided
        inner = splits
        if decided.level > Level.UNIFORM:
            inner = [*splits, _Split("branch", statement, statement.keyword, statement.calls, decided, statement)]
        condition = self.values.condition(statement.condition)
        then_env, else_env = dict(env), dict(env)
        then_falls = else_falls = False
        then_left: list[_Split] = []
        else_left: list[_Split] = []
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
                    self._set(env, variable, self._assigned_under(variable, decided, one.variation, other.variation))
                else:
                    self._set(env, variable, _join(one.variation, other.variation))
            return True, left
        if then_falls or else_falls:
            chosen = then_env if then_falls else else_env
            for variable in list(env):
                env[variable] = chosen[variable]
            return True, left
        return False, left

    def _loop(self, statement: ir.For | ir.While, env: _Env, splits: list[_Split]) -> list[_Split]:
        assigned = [v for v in self._assigned_in(statement) if v in env]
        entry = {v: env[v] for v in assigned}
        for variable in assigned:
            self._join_head(statement, variable, entry[variable].variation)
            env[variable] = self._heads[statement, variable]
        trips: Variation | None = None
        if isinstance(statement, ir.For):
            trips = self._trips(statement, env)
            self.decides[statement] = trips
        scope = _Scope("loop", len(splits), [], [], [])
        inner = list(splits)
        if trips is not None and trips.level > Level.UNIFORM:
            inner.append(_Split("trip", statement, statement.keyword, statement.calls, trips, statement))
        late = self._late.setdefault(statement, {})
        inner += late.values()
        body = dict(env)
        self._scopes.append(scope)
        falls = True
        left: list[_Split] = []
        if isinstance(statement, ir.While):
            known = self._late.get(statement, {})
            probe = self._heads.get((statement, _CONDITION))
            if probe is not None and probe.variation.level > Level.UNIFORM:
                inner = [
                    *splits,
                    _Split("trip", statement, statement.keyword, statement.calls, probe.variation, statement),
                    *known.values(),
                ]
            falls, left = self._block(statement.prelude, body, inner)
            self._at = statement
            decided = self._decided(statement, statement.condition, body)
            self.decides[statement] = decided
            self._join_head(statement, _CONDITION, decided)
            trips = decided
            head_env = dict(body)
        else:
            self._set(body, statement.variable, self._walked(statement, env))
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
                self._changed = self._learnt = True
        self._behind(statement, env, head_env, assigned, trips, scope.breaks)
        return [split for split in outliving if id(split.statement) not in breaks]

    def _behind(
        self,
        statement: ir.For | ir.While,
        env: _Env,
        head: _Env,
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
                    variation = _join(variation, path.env[variable].variation)
            if cause is not None and variation.level <= Level.UNIFORM:
                name = f"`{variable.name}`" if variable.name else "the result"
                origin = Origin(
                    "loop-exit", variable.span, variable.calls,
                    f"{name} changes in a loop that blocks leave at different rounds", cause.certain,
                )
                variation = Variation(cause.level, cause.certain, origin, cause, cause.length + 1, False)
            self._set(env, variable, variation)
        loop = self.values.loops.get(statement)
        if loop is not None:
            level = Level.UNIFORM if cause is None else cause.level
            bounds = (loop.lo, loop.hi, loop.step)
            keys = tuple(bound.key for bound in bounds if bound is not None)
            atom: Atom = ("trips", *(keys if len(keys) == 3 else (loop.index,)))
            if self.atoms.get(atom) != level:
                self._changed = self._changed or self.atoms.get(atom, Level.CONSTANT) < level
                self._learnt = True
                self.atoms[atom] = level

    def _join_head(self, statement: ir.Statement, variable: ir.Variable, variation: Variation) -> None:
        known = self._heads.get((statement, variable))
        if known is None or variation.level > known.variation.level or (
            variation.level == known.variation.level and variation.certain and not known.variation.certain
        ):
            self._heads[statement, variable] = _Binding(variation)
            self._changed = self._learnt = True

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

    def _decided(self, statement: ir.Statement, expression: ir.Expression, env: _Env) -> Variation:
        """The variation of a condition, judged by its meaning where that is known."""
        variation = self._of(expression, env)
        if variation.level <= Level.UNIFORM:
            return variation
        condition = self.values.condition(expression)
        if self.level_of_condition(condition) <= Level.UNIFORM:
            return UNIFORM
        settled = self._settling.get(statement)
        if settled is None:
            settled = self._always(condition, self._inside(statement))
            self._settling[statement] = settled
        return UNIFORM if settled else variation

    def _ground(self, splits: Sequence[_Split], barrier: ir.Barrier) -> str:
        """What the parting at a barrier rests on, as `Divergence` says."""
        by_index = [split for split in splits if split.variation.certain]
        told = [split for split in splits if self._is_certain(split, barrier)]
        if told or by_index:
            found = [self._examples[split.parting, barrier] for split in told]
            examples = [example for example in found if example is not None]
            if any(parts_at(self.program, example) for example in examples):
                return "witness"
            parting = parting_of(self.program)
            if barrier in parting.at or (examples and (parting.at or not parting.agreed)):
                return "witness"
        return "none" if len(by_index) == len(splits) else "data"

    def _is_certain(self, split: _Split, barrier: ir.Barrier) -> bool:
        """Whether index arithmetic alone tells two blocks apart there: by numbers where the construct is arithmetic."""
        key = (split.parting, barrier)
        known = self._certain.get(key)
        if known is None:
            reached = self.values.context(barrier)
            self._examples[key] = self._example(split.parting, reached)
            known = self._examples[key] is not None or self._unsettled(split.parting, split.variation)
            self._certain[key] = known
        return known

    def _example(self, statement: ir.Statement, reached: Context) -> Apart | None:
        """Numbers at which a construct takes two blocks different ways."""
        if isinstance(statement, ir.For):
            loop = self.values.loops.get(statement)
            return (
                None if loop is None else trips_tell_apart(self.values, loop, self.values.context(statement), reached)
            )
        if isinstance(statement, (ir.If, ir.While)):
            condition = self.values.condition(statement.condition)
            return condition_tells_apart(self.values, condition, self._inside(statement), reached)
        return None

    def _unsettled(self, statement: ir.Statement, variation: Variation) -> bool:
        """Whether the block index has a part in a decision of which no numbers can tell."""
        if isinstance(statement, ir.For):
            loop = self.values.loops.get(statement)
            if loop is None or loop.lo is None or loop.hi is None or loop.step is None:
                return variation.certain
            return variation.certain and not all(map(self._is_arithmetic, (loop.lo, loop.hi, loop.step)))
        if isinstance(statement, (ir.If, ir.While)):
            return variation.certain and not self._settled(self.values.condition(statement.condition))
        return variation.certain

    def _settled(self, condition: Condition) -> bool:
        return not opaques(condition) and all(self._is_arithmetic(poly) for poly in polys(condition))

    def _inside(self, statement: ir.Statement) -> Context:
        context = self.values.context(statement)
        if isinstance(statement, ir.While):
            loop = self.values.loops.get(statement)
            if loop is not None:
                return Context(context, None, loop.index, None, statement, (), context.depth + 1)
        return context

    def _always(self, condition: Condition, context: Context) -> bool:
        """Whether what holds at the place decides the condition."""
        given = [*self.values.given(context), *self._limits]
        return self._follows(condition, given) or self._follows(negation(condition), given)

    def _follows(self, condition: Condition, given: list[Poly]) -> bool:
        match condition:
            case Truth(value=known):
                return known
            case Compare(op="ge", poly=poly):
                return self.values.knowledge.never_negative(poly, given)
            case Compare(op="ne", poly=poly):
                holds = self.values.knowledge.never_negative
                return holds(poly - 1, given) or holds(-poly - 1, given)
            case All(parts=parts):
                return all(self._follows(part, given) for part in parts)
            case AnyOf(parts=parts):
                return any(self._follows(part, given) for part in parts)
        return False

    def _is_arithmetic(self, poly: Poly) -> bool:
        return not any(poly.mentions(kind) for kind in ("var", "load", "unsigned", "atomic", "expr", "op", "wrap"))

    def _trips(self, statement: ir.For, env: _Env) -> Variation:
        variation = CONSTANT
        for bound in (statement.lo, statement.hi, statement.step):
            variation = _join(variation, self._of(bound, env))
        if variation.level <= Level.UNIFORM:
            return variation
        loop = self.values.loops.get(statement)
        if loop is None or loop.lo is None or loop.hi is None or loop.step is None:
            return variation
        if (
            (self.level_of_poly(loop.hi - loop.lo) <= Level.UNIFORM
            and self.level_of_poly(loop.step) <= Level.UNIFORM)
            or (loop.trips is not None
            and self.level_of_poly(loop.trips) <= Level.UNIFORM)
        ):
            return UNIFORM
        return variation

    def _walked(self, statement: ir.For, env: _Env) -> Variation:
        """The loop variable: rounds are counted alike by all blocks that are still in the loop."""
        variation = self._of(statement.lo, env)
        variation = _join(variation, self._of(statement.step, env))
        loop = self.values.loops.get(statement)
        known = loop is not None and loop.value is not None and self.level_of_poly(loop.value) <= Level.UNIFORM
        if known and variation.level > Level.UNIFORM:
            return UNIFORM
        return _join(variation, UNIFORM)

    # --- expressions ------------------------------------------------------------------------------

    def _of(self, expression: ir.Expression, env: _Env) -> Variation:
        variation = self._raw(expression, env)
        if self._believed and variation.level > Level.UNIFORM:
            value_of = self.values.polys.get(expression)
            if value_of is not None and ("poly", value_of.key) in self._believed:
                variation = UNIFORM
        if is_integer(expression.type):
            poly = self.values.polys.get(expression)
            if poly is not None:
                self._note_atom(poly, variation, expression)
                if variation.level > Level.UNIFORM:
                    level = self.level_of_poly(poly)
                    if level <= Level.UNIFORM:
                        variation = UNIFORM if level == Level.UNIFORM else CONSTANT
        elif is_bool(expression.type) and variation.level > Level.UNIFORM:
            condition = self.values.conditions.get(expression)
            if condition is not None:
                for opaque in opaques(condition):
                    if opaque.expression is None or opaque.expression is expression:
                        self.variations.setdefault(opaque.key, variation)
                if self.level_of_condition(condition) <= Level.UNIFORM:
                    variation = UNIFORM
        self.variations[expression] = variation
        return variation

    def _note_atom(self, poly: Poly, variation: Variation, expression: ir.Expression) -> None:
        """An atom that stands for just this value has its level."""
        if len(poly.terms) != 1:
            return
        ((monomial, c),) = poly.terms.items()
        if c != 1 or len(monomial) != 1 or monomial[0][0] not in ("var", "load", "unsigned", "atomic", "expr"):
            return
        if not isinstance(expression, (ir.VariableRef, ir.Load)) and monomial[0][0] != "expr":
            return
        atom = monomial[0]
        if atom in self._assumed_atoms:
            return
        known = self.atoms.get(atom)
        if known is None or known < variation.level:
            self.atoms[atom] = variation.level
            self._changed = self._changed or known is not None
            self._learnt = True

    def _raw(self, expression: ir.Expression, env: _Env) -> Variation:
        kind = type(expression)
        if kind in _SAME_EVERYWHERE:
            return CONSTANT
        if kind in _SAME_IN_A_LAUNCH:
            return UNIFORM
        match expression:
            case ir.VariableRef(variable=variable):
                return self._reference(expression, variable, env)
            case ir.BlockIndex(axis=axis):
                if self.one_axis and axis != 0:
                    return UNIFORM
                origin = Origin(
                    "block", expression.span, expression.calls, f"`ctx.block.{NAMES[axis]}` is the block index", True
                )
                return Variation(Level.VARYING, True, origin, None, 1, False)
            case ir.ThreadValue(name=name):
                origin = Origin(
                    "thread", expression.span, expression.calls, f"`{name}` differs from thread to thread", True
                )
                return Variation(Level.LANE, True, origin, None, 1, False)
            case ir.Load(access=access):
                return self._loaded(expression, access, env)
            case ir.BuiltinCall(name="iota"):
                for argument in expression.arguments:
                    self._of(argument, env)
                return CONSTANT
            case ir.BuiltinCall(name="gather", arguments=(ir.TensorRef(tensor=tensor), index)):
                return self._from_tensor(tensor, self._of(index, env), expression)
        variation = CONSTANT
        for child in children_of(expression):
            variation = _join(variation, self._of(child, env))
        return variation

    def _reference(self, expression: ir.VariableRef, variable: ir.Variable, env: _Env) -> Variation:
        binding = env.get(variable)
        if binding is None:
            return CONSTANT
        variation = binding.variation
        access = self._views.get(variable)
        if access is not None:
            variation = (
                self._from_tensor(access.base, variation, expression, access)
                if isinstance(access.base, ir.Tensor)
                else _join(variation, env[access.base].variation if access.base in env else CONSTANT)
            )
        if variation.level <= Level.UNIFORM or not variable.name:
            return variation
        root = variation
        if root.reference and root.because is not None:
            root = root.because
        first = root.origin
        if first is None or first.span == expression.span:
            return variation
        origin = Origin(first.kind, expression.span, expression.calls, _says(variable.name, first), root.certain)
        return Variation(root.level, root.certain, origin, root, root.length + 1, True)

    def _subscripts(self, access: ir.Access, env: _Env) -> Variation:
        variation = CONSTANT
        for sub in access.subs:
            if isinstance(sub, ir.PointSub):
                variation = _join(variation, self._of(sub.index, env))
            else:
                variation = _join(variation, self._of(sub.first, env))
                variation = _join(variation, self._of(sub.length, env))
        return variation

    def _loaded(self, expression: ir.Load, access: ir.Access, env: _Env) -> Variation:
        subscripts = self._subscripts(access, env)
        if isinstance(access.base, ir.Variable):
            held = env.get(access.base)
            return _join(subscripts, CONSTANT if held is None else held.variation)
        if ("load", self._load_key(access)) in self._believed:
            return UNIFORM
        return self._from_tensor(access.base, subscripts, expression, access)

    def _load_key(self, access: ir.Access) -> tuple[object, ...]:
        parts: list[object] = [access.base.name]
        for sub in access.subs:
            if isinstance(sub, ir.PointSub):
                parts.append(self.values.poly(sub.index).key)
            else:
                parts.append((self.values.poly(sub.first).key, self.values.poly(sub.length).key))
        return tuple(parts)

    def _from_tensor(
        self, tensor: ir.Tensor, subscripts: Variation, expression: ir.Expression, access: ir.Access | None = None
    ) -> Variation:
        if subscripts.level > Level.UNIFORM:
            where = Origin(
                "load", expression.span, expression.calls,
                f"`{tensor.name}` is read at a place that differs between blocks", False,
            )
            return Variation(subscripts.level, False, where, subscripts, subscripts.length + 1, False)
        if self._at is not None and self._writes.reach(self._at, tensor, access):
            where = Origin(
                "load", expression.span, expression.calls,
                f"`{tensor.name}` is written by blocks in this phase", False,
            )
            return Variation(Level.VARYING, False, where, None, 1, False)
        return UNIFORM

    def _assume(self, statement: ir.AssumeUniform, assumed: ir.Expression, env: _Env) -> None:
        before = self._of(assumed, env)
        # Later passes believe it already; the first one saw what it is worth.
        self._assumed[statement] = max(before.level, self._assumed.get(statement, before.level))
        if isinstance(assumed, ir.VariableRef) and assumed.variable not in self._views:
            self._set(env, assumed.variable, UNIFORM)
            self.variations[assumed.variable] = before
            poly = self.values.polys.get(assumed)
            if poly is not None and len(poly.terms) == 1:
                ((monomial, c),) = poly.terms.items()
                if c == 1 and len(monomial) == 1 and monomial[0][0] != "block":
                    self._learnt = self._learnt or monomial[0] not in self._assumed_atoms
                    self.atoms[monomial[0]] = Level.UNIFORM
                    self._assumed_atoms.add(monomial[0])
        poly = self.values.polys.get(assumed)
        if poly is not None:
            self._believed.add(("poly", poly.key))
        if isinstance(assumed, ir.Load):
            self._believed.add(("load", self._load_key(assumed.access)))

    # --- barriers ---------------------------------------------------------------------------------

    def _divergences(self) -> tuple[Divergence, ...]:
        found: list[Divergence] = []
        grouped: set[ir.Barrier] = set()
        order = [s for s in statements_in(self.program) if isinstance(s, ir.Barrier)]
        for barrier in order:
            splits = self._found.get(barrier)
            if not splits or barrier in grouped:
                continue
            outermost = splits[0]
            ground = self._ground(splits, barrier)
            kind = outermost.kind
            others: tuple[ir.Barrier, ...] = ()
            if kind == "branch" and isinstance(outermost.statement, ir.If):
                arms = [
                    [s for s in statements_of(block) if isinstance(s, ir.Barrier) and s in self._found]
                    for block in (outermost.statement.then, outermost.statement.otherwise)
                ]
                if all(arms):
                    kind = "arms"
                    others = tuple(b for arm in arms for b in arm if b is not barrier)
                    grouped.update(others)
            found.append(
                Divergence(
                    barrier, kind, outermost.construct, outermost.calls, outermost.variation.chain(), ground, others
                )
            )
        return tuple(found)


_CONDITION = ir.Variable("", "temp", ir.ScalarT("bool"), Span(None, 0, 0), ())


def _says(name: str, origin: Origin) -> str:
    match origin.kind:
        case "block":
            return f"`{name}` depends on the block index"
        case "load":
            return f"`{name}` depends on data that blocks may see differently"
        case "atomic":
            return f"`{name}` depends on the result of an atomic"
        case "thread":
            return f"`{name}` depends on the thread"
    return f"`{name}` may differ between blocks"


def _join(a: Variation, b: Variation) -> Variation:
    """The higher level; of two equal ones the certain, then the one explained in fewer steps."""
    if a.level != b.level:
        return a if a.level > b.level else b
    if a.certain != b.certain:
        return a if a.certain else b
    return b if b.length < a.length else a


@fact
def uniformity_of(program: Program) -> Uniformity:
    """The uniformity of every value and place of a program."""
    analysis = _Analysis(program)
    analysis.run()
    return analysis


__all__ = ["Assumption", "Divergence", "Level", "Origin", "Uniformity", "Variation", "uniformity_of"]

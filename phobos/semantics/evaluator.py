"""The evaluator behind `values`: a program run over polynomials.

It runs once with every variable that a loop changes unknown, guesses by how much each changes a round, and runs
again until the guesses hold; what does not settle stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from phobos.semantics import ir
from phobos.semantics.conditions import (
    FALSE,
    TRUE,
    All,
    Compare,
    Condition,
    Opaque,
    Truth,
    all_of,
    any_of,
    key_of,
    negation,
)
from phobos.semantics.expression_values import Env, ExpressionValues
from phobos.semantics.knowledge import ROOT, Knowledge, split
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program
from phobos.semantics.values import Context, LoopFact
from phobos.semantics.walking import blocks_of, is_bool, is_integer
from phobos.value import value

PASSES = 6


@value
class _Exits:
    """The environments with which a loop body or an inlined function is left."""

    breaks: list[Env]
    continues: list[Env]
    leaves: list[Env]
    outer: list[object]  # one for each exit that leaves more than this


class Evaluator(ExpressionValues):
    """One program, run over polynomials until the guesses about its loops hold."""

    def __init__(
        self, program: Program, knowledge: Knowledge, constants: Mapping[str, Poly], written: frozenset[str]
    ) -> None:
        super().__init__(program, knowledge, constants, written)
        self._guesses: dict[tuple[object, ir.Variable], Poly | None] = {}
        self._barred: set[tuple[object, ir.Variable]] = set()
        self._changed = False
        self._assigned: dict[object, frozenset[ir.Variable]] = {}
        self._loop_indices: dict[object, int] = {}
        self._exits: list[tuple[str, _Exits]] = []
        self._dead = False

    # --- running ----------------------------------------------------------------------------------

    def run(self) -> None:
        for attempt in range(PASSES + 1):
            self._changed = False
            self._reset()
            self._block(self.program.body, {}, self.root)
            if not self._changed:
                return
            if attempt == PASSES - 1:
                for key in self._guesses:
                    self._barred.add(key)
                self._guesses = {}

    def _reset(self) -> None:
        self.polys.clear()
        self.conditions.clear()
        self.contexts.clear()
        self.loops.clear()
        self.by_atom.clear()
        self.unreachable.clear()
        self.once.clear()
        self.merged.clear()
        self._dead = False

    def _block(self, block: ir.Block, env: Env, context: Context) -> tuple[bool, Condition]:
        """Run the statements; whether control can fall out of the end, and when it left before. Changes `env`."""
        alive = True
        left: list[Condition] = []
        was_dead = self._dead
        for statement in block.statements:
            if not alive:
                self._dead = True
            if self._dead:
                self.unreachable.add(statement)
            falls, gone = self._statement(statement, env, context)
            alive = alive and falls
            if not isinstance(gone, Truth):
                context = self._guard(context, negation(gone), statement)
            left.append(gone)
        self._dead = was_dead
        return alive, any_of(*left)

    def _statement(self, statement: ir.Statement, env: Env, context: Context) -> tuple[bool, Condition]:
        """Whether control goes on behind a statement, and the condition under which it leaves the block there."""
        self.contexts[statement] = context
        match statement:
            case ir.Define(variable=variable, value=initial):
                if initial is not None:
                    self._bind(env, variable, initial, context)
            case ir.DefineView(access=access):
                self._access(access, env, context)
            case ir.Assign(variable=variable, op=op, value=new):
                self._assign(statement, variable, op, new, env, context)
            case ir.Store(access=access, value=stored):
                self._access(access, env, context)
                self._any(stored, env, context)
            case ir.Evaluate(value=evaluated) | ir.AssumeUniform(value=evaluated):
                self._any(evaluated, env, context)
            case ir.For():
                return self._for(statement, env, context)
            case ir.While():
                return self._while(statement, env, context)
            case ir.If():
                return self._if(statement, env, context)
            case ir.Break():
                self._leave("loop", "breaks", env)
                return False, TRUE
            case ir.Continue():
                self._leave("loop", "continues", env)
                return False, TRUE
            case ir.Leave(leaves_kernel=leaves_kernel):
                if leaves_kernel:
                    for _, exits in [] if self._dead else self._exits:
                        exits.outer.append(statement)
                else:
                    self._leave("inline", "leaves", env)
                return False, TRUE
            case ir.Inline(body=body):
                exits = _Exits([], [], [], [])
                self._exits.append(("inline", exits))
                falls, _ = self._block(body, env, context)
                self._exits.pop()
                return self._merge_into(env, falls, exits.leaves, context, statement), FALSE
            case ir.Atomic(index=index, operands=operands, result=result):
                self._any(index, env, context)
                for operand in operands:
                    self._any(operand, env, context)
                if result is not None:
                    poly = self._fresh("atomic", context.loop_index, self._ordinal(statement))
                    self.atomics[next(iter(poly.atoms))] = statement
                    env[result] = poly
            case ir.UnsupportedCall(arguments=arguments):
                for argument in arguments:
                    self._any(argument, env, context)
        return True, FALSE

    def _leave(self, frame: str, how: str, env: Env) -> None:
        if self._dead:
            return
        for kind, exits in reversed(self._exits):
            if kind == frame:
                getattr(exits, how).append(dict(env))
                return
            exits.outer.append(None)

    def _escapes(self, statement: ir.Statement, exits: _Exits) -> Condition:
        """When a loop is left for good, past the statements behind it: nobody can say, if it can be at all."""
        if not exits.outer or self._dead:
            return FALSE
        return Opaque(("left", self._ordinal(statement)), True, None)

    def _bind(self, env: Env, variable: ir.Variable, expression: ir.Expression, context: Context) -> None:
        known = self._any(expression, env, context)
        if is_integer(variable.type):
            env[variable] = known if isinstance(known, Poly) else self._unknown(variable, context, variable)
        elif is_bool(variable.type):
            env[variable] = (
                Opaque(("bool", self._ordinal(variable)), True, None)
                if known is None or isinstance(known, Poly)
                else known
            )

    def _assign(
        self,
        statement: ir.Assign,
        variable: ir.Variable,
        op: str | None,
        new: ir.Expression,
        env: Env,
        context: Context,
    ) -> None:
        known = self._any(new, env, context)
        if is_integer(variable.type):
            if not isinstance(known, Poly):
                env[variable] = self._unknown(variable, context, statement)
            elif op is None:
                env[variable] = known
            else:
                old = env.get(variable)
                if isinstance(old, Poly):
                    env[variable] = self._arithmetic(op, old, known, context, statement)
                else:
                    env[variable] = self._unknown(variable, context, statement)
        elif is_bool(variable.type):
            env[variable] = (
                Opaque(("bool", self._ordinal(statement)), True, None)
                if known is None or isinstance(known, Poly)
                else known
            )

    def _unknown(self, variable: ir.Variable, context: Context, site: object) -> Poly:
        return self._fresh("var", context.loop_index, self._ordinal(variable), self._ordinal(site))

    # --- control ----------------------------------------------------------------------------------

    def _if(self, statement: ir.If, env: Env, context: Context) -> tuple[bool, Condition]:
        condition = self._bool(statement.condition, env, context)
        arms: list[tuple[Env, bool]] = []
        left: list[Condition] = []
        for block, guard in ((statement.then, condition), (statement.otherwise, negation(condition))):
            arm = dict(env)
            was_dead = self._dead
            impossible = isinstance(guard, Truth) and not guard.value
            self._dead = was_dead or impossible
            falls, gone = self._block(block, arm, self._guard(context, guard, statement))
            self._dead = was_dead
            arms.append((arm, falls and not impossible))
            left.append(all_of(guard, gone))
        (then_env, then_falls), (else_env, else_falls) = arms
        if then_falls and else_falls:
            self._merge_into(then_env, True, [else_env], context, statement)
        self._replace(env, else_env if else_falls and not then_falls else then_env)
        return then_falls or else_falls, any_of(*left)

    @staticmethod
    def _replace(env: Env, new: Env) -> None:
        env.clear()
        env.update(new)

    def _merge_into(self, env: Env, alive: bool, others: list[Env], context: Context, site: object) -> bool:
        """Join environments where paths meet again; whether any path arrives."""
        if not alive:
            if not others:
                return False
            first, *others = others
            self._replace(env, first)
        for variable, mine in list(env.items()):
            theirs = [other.get(variable) for other in others]
            if all(_same(mine, other) for other in theirs):
                continue
            if isinstance(mine, Poly):
                joined = self._unknown(variable, context, site)
                known = [other for other in theirs if isinstance(other, Poly)]
                if len(known) == len(theirs):
                    atom = next(iter(joined.atoms))
                    self.merged[atom] = (mine, *known)
                    if all(
                        self.knowledge.never_negative(choice, self.knowledge.bounds_around(context.loop_index))
                        for choice in (mine, *known)
                    ):
                        self.knowledge.signs[atom] = True
                    else:
                        self.knowledge.signs.pop(atom, None)
                env[variable] = joined
            else:
                env[variable] = Opaque(("bool", self._ordinal(variable), self._ordinal(site)), True, None)
        return True

    def _loop_index(self, statement: ir.For | ir.While, context: Context) -> int:
        index = self._loop_indices.get(statement)
        if index is None:
            knowledge = self.knowledge
            index = len(knowledge.parents)
            self._loop_indices[statement] = index
            parent = context.loop_index
            knowledge.parents.append(parent)
            knowledge.depths.append(0 if parent == ROOT else knowledge.depths[parent] + 1)
            knowledge.homes["round", index] = index
        return index

    def _head(self, statement: ir.For | ir.While, env: Env, index: int) -> Env:
        """The environment at the start of any round; what the loop assigns is as guessed, or unknown."""
        head = dict(env)
        for variable in self._assigned_in(statement):
            start = env.get(variable)
            if start is None:
                continue
            if isinstance(start, Poly):
                guess = self._guesses.get((statement, variable))
                head[variable] = (
                    self._fresh("var", index, self._ordinal(variable), self._ordinal(statement))
                    if guess is None
                    else start + guess * Poly.atom("round", index)
                )
            else:
                head[variable] = Opaque(("bool", self._ordinal(variable), self._ordinal(statement)), True, None)
        return head

    def _close(self, statement: ir.For | ir.While, env: Env, head: Env, end: Env, alive: bool, index: int) -> None:
        """Compare what a round made of each variable with what it found, and guess for the next pass."""
        if not alive:
            self.once.add(statement)
            return
        for variable in self._assigned_in(statement):
            start, after = head.get(variable), end.get(variable)
            if not isinstance(start, Poly) or not isinstance(after, Poly):
                continue
            key = (statement, variable)
            first = env.get(variable)
            if self._guesses.get(key) is None and isinstance(first, Poly):
                self.merged[next(iter(start.atoms))] = (first, after)
            if key in self._barred:
                continue
            change = after - start
            guess = self._guesses.get(key)
            if self.knowledge.is_invariant(change, index):
                if guess is None or guess != change:
                    self._guesses[key] = change
                    self._changed = True
            elif guess is not None:
                self._guesses[key] = None
                self._barred.add(key)
                self._changed = True

    def _stay(self, statement: ir.While, env: Env) -> None:
        """A loop that never goes round finds each variable as it was before it, whatever its only round makes of it."""
        for variable in self._assigned_in(statement):
            key = (statement, variable)
            if isinstance(env.get(variable), Poly) and key not in self._guesses and key not in self._barred:
                self._guesses[key] = Poly.of(0)
                self._changed = True

    def _after(
        self,
        statement: ir.For | ir.While,
        env: Env,
        fact_: LoopFact,
        context: Context,
        exits: _Exits,
        prelude: Env | None,
    ) -> None:
        """The environment behind a loop."""
        assigned = self._assigned_in(statement)
        trips = fact_.trips
        if trips is None:
            bounds = (fact_.lo, fact_.hi, fact_.step)
            known = tuple(bound.key for bound in bounds if bound is not None)
            trips = self._fresh("trips", context.loop_index, *(known if len(known) == 3 else (fact_.index,)))
        for variable in assigned:
            start = env.get(variable)
            if start is None:
                continue
            if isinstance(start, Poly):
                guess = self._guesses.get((statement, variable))
                if guess is not None and not guess.terms:
                    continue
                if guess is not None and not exits.breaks and prelude is None:
                    env[variable] = start + guess * trips
                else:
                    env[variable] = self._fresh(
                        "var", context.loop_index, self._ordinal(variable), self._ordinal(statement), "after"
                    )
            else:
                env[variable] = Opaque(("bool", self._ordinal(variable), self._ordinal(statement), "after"), True, None)

    def _for(self, statement: ir.For, env: Env, context: Context) -> tuple[bool, Condition]:
        lo = self._int(statement.lo, env, context)
        hi = self._int(statement.hi, env, context)
        step = self._int(statement.step, env, context)
        index = self._loop_index(statement, context)
        atom: Atom = ("round", index)
        current = lo + step * Poly({(atom,): 1})
        trips = self._trips(lo, hi, step, context)
        known = LoopFact(statement, atom, lo, hi, step, current, trips, index, context.loop_index)
        self.loops[statement] = known
        self.by_atom[atom] = known
        given = [hi - 1 - current]
        if step.constant is None:
            given.append(step - 1)
        self.knowledge.always[index] = tuple(given)
        inside = Context(context, known, index, None, statement, tuple(given), context.depth + 1)
        head = self._head(statement, env, index)
        body = dict(head)
        body[statement.variable] = current
        exits = _Exits([], [], [], [])
        self._exits.append(("loop", exits))
        was_dead = self._dead
        self._dead = was_dead or (trips is not None and trips.constant == 0)
        alive, _ = self._block(statement.body, body, inside)
        self._dead = was_dead
        self._exits.pop()
        alive = self._merge_into(body, alive, exits.continues, inside, statement.body)
        self._close(statement, env, head, body, alive, index)
        self._after(statement, env, known, context, exits, None)
        return self._behind(statement, exits, alive, trips is not None and (trips.constant or 0) > 0)

    def _behind(self, statement: ir.For | ir.While, exits: _Exits, alive: bool, begins: bool) -> tuple[bool, Condition]:
        """What `_statement` says of a loop: where there is a first round and nothing comes out of it, none goes on."""
        if begins and not alive and not exits.breaks:
            return False, TRUE
        return True, self._escapes(statement, exits)

    def _trips(self, lo: Poly, hi: Poly, step: Poly, context: Context) -> Poly | None:
        """How many rounds `range(lo, hi, step)` has, where that is a polynomial."""
        distance = hi - lo
        n, k = distance.constant, step.constant
        if n is not None and k is not None:
            return Poly.of(max(0, -(-n // k))) if k > 0 else None
        whole, rest = split(distance, step)
        if not whole.terms:
            return None
        given = self.given(context)
        holds = self.knowledge.never_negative
        if holds(whole, given) and holds(-rest, given) and holds(rest + step - 1, given):
            return whole
        return None

    def _while(self, statement: ir.While, env: Env, context: Context) -> tuple[bool, Condition]:
        index = self._loop_index(statement, context)
        atom: Atom = ("round", index)
        head = self._head(statement, env, index)
        body = dict(head)
        self.knowledge.always[index] = ()
        unknown = LoopFact(statement, atom, None, None, None, None, None, index, context.loop_index)
        outer = Context(context, unknown, index, None, statement, (), context.depth + 1)
        self._block(statement.prelude, body, outer)
        condition = self._bool(statement.condition, body, outer)
        known = self._walked(statement, condition, atom, index, context)
        self.loops[statement] = known
        self.by_atom[atom] = known
        outer = Context(context, known, index, None, statement, (), context.depth + 1)
        inside = self._guard(outer, condition, statement)
        exits = _Exits([], [], [], [])
        self._exits.append(("loop", exits))
        alive, _ = self._block(statement.body, body, inside)
        self._exits.pop()
        alive = self._merge_into(body, alive, exits.continues, inside, statement.body)
        once = not alive and not exits.breaks and not statement.prelude.statements
        self._close(statement, env, head, body, alive, index)
        if once:
            self._stay(statement, env)
        self._after(statement, env, known, context, exits, body if statement.prelude.statements else None)
        sure = isinstance(condition, Truth) and condition.value
        begins = sure or (known.trips is not None and (known.trips.constant or 0) > 0)
        return self._behind(statement, exits, alive, begins)

    def _walked(self, statement: ir.While, condition: Condition, atom: Atom, index: int, context: Context) -> LoopFact:
        """What a `while` walks: the first of its conditions that bounds something growing evenly."""
        parts = condition.parts if isinstance(condition, All) else (condition,)
        for part in parts:
            if not isinstance(part, Compare) or part.op != "ge" or not part.poly.is_linear_in(atom):
                continue
            step = -part.poly.coefficient(atom)
            start = part.poly.without(atom)
            if not step.terms or not self.knowledge.is_invariant(step, index):
                continue
            if not self.knowledge.is_invariant(start, index) or not self.holds(step - 1, context):
                continue
            # `hi - 1 - value >= 0`: what mentions the block walks, the rest bounds.
            lo = -Poly({m: c for m, c in start.terms.items() if c < 0})
            hi = Poly({m: c for m, c in start.terms.items() if c > 0}) + 1
            constant = start.terms.get((), 0)
            if constant < 0:
                lo, hi = lo + constant, hi + constant
            trips = self._trips(lo, hi, step, context) if len(parts) == 1 else None
            current = lo + step * Poly({(atom,): 1})
            return LoopFact(statement, atom, lo, hi, step, current, trips, index, context.loop_index)
        return LoopFact(statement, atom, None, None, None, None, None, index, context.loop_index)

    def _assigned_in(self, statement: ir.For | ir.While) -> frozenset[ir.Variable]:
        known = self._assigned.get(statement)
        if known is None:
            found: dict[ir.Variable, None] = {}
            blocks = [statement.body]
            if isinstance(statement, ir.While):
                blocks.append(statement.prelude)
            while blocks:
                for inner in blocks.pop().statements:
                    if isinstance(inner, ir.Assign):
                        found[inner.variable] = None
                    elif isinstance(inner, ir.Inline) and inner.result is not None:
                        found[inner.result] = None
                    blocks.extend(blocks_of(inner))
            known = frozenset(found)
            self._assigned[statement] = known
        return known


def _same(a: Poly | Condition | None, b: Poly | Condition | None) -> bool:
    if a is b:
        return True
    if isinstance(a, Poly) or isinstance(b, Poly):
        return isinstance(a, Poly) and isinstance(b, Poly) and a == b
    return a is not None and b is not None and key_of(a) == key_of(b)

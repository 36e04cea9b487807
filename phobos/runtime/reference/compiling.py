"""A typed program compiled to a flat list of instructions (`code`).

Structured control flow becomes branches forward and one jump back per loop, laid out so that the group furthest behind,
run first, meets the others again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phobos.runtime.reference import numbers
from phobos.runtime.reference.code import (
    ATOMIC,
    BARRIER,
    BRANCH,
    END,
    JUMP,
    ROUND,
    RUN,
    BarrierPlace,
    Code,
    Instruction,
)
from phobos.runtime.reference.evaluation import Eval, NotExecutable, rank_of
from phobos.runtime.reference.expressions import Expressions
from phobos.runtime.reference.faults import Fault, Site
from phobos.runtime.reference.group import Group, Key
from phobos.runtime.reference.machine import Place
from phobos.runtime.reference.numbers import DTYPES, Value
from phobos.runtime.reference.stores import assign, static_shape, store, whole
from phobos.semantics import ir
from phobos.semantics.program import Program, fact
from phobos.semantics.walking import everything_in, statements_of


@fact
def code_of(program: Program) -> Code:
    """Compiles a program. Raises `NotExecutable` for what is checked but not executed."""
    return _Compiler(program).compile()


class _Compiler:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.expressions = Expressions()
        self.instructions: list[Instruction] = []
        self.scopes: list[frozenset[Key]] = []
        self.visible: list[set[Key]] = [set()]
        self.current: frozenset[Key] | None = frozenset()
        self.barriers: dict[int, BarrierPlace] = {}
        self.enclosing: list[ir.If | ir.For | ir.While] = []
        self.loops: list[tuple[list[int], list[int]]] = []  # jumps of `continue`, of `break`
        self.inlines: list[list[int]] = []
        self.mutable: set[Key] = set()
        self.assumptions: set[Key] = set()

    def compile(self) -> Code:
        body = self.program.body
        statements = list(statements_of(body))
        for statement in statements:
            if isinstance(statement, (ir.Assign, ir.Store)):
                base = statement.variable if isinstance(statement, ir.Assign) else statement.access.base
                if isinstance(base, ir.Variable) and rank_of(base.type):
                    self.mutable.add(base)
        self.block(body)
        self.emit(END, None)
        stored = frozenset(
            s.access.base.name for s in statements if isinstance(s, ir.Store) and isinstance(s.access.base, ir.Tensor)
        )
        atomics = frozenset(s.tensor.name for s in statements if isinstance(s, ir.Atomic))
        whiles = [s for s in statements if isinstance(s, ir.While)]
        scopes = self.scopes
        if self.assumptions:
            extra = frozenset(self.assumptions)
            scopes = [scope | extra for scope in scopes]
        return Code(
            program=self.program,
            instructions=tuple(self.instructions),
            scope=tuple(scopes),
            mutable=frozenset(self.mutable),
            barriers=self.barriers,
            local_whiles=frozenset(w for w in whiles if not _touches_tensors(w)),
            barrier_whiles=frozenset(w for w in whiles if _has_barrier(w)),
            has_while=bool(whiles),
            has_atomic=bool(atomics),
            stored=stored,
            atomics=atomics,
        )

    # --- emitting -------------------------------------------------------------------------------------------

    def emit(self, kind: int, statement: ir.Statement | None, action: Any = None, target: int = -1) -> int:
        if self.current is None:
            self.current = frozenset().union(*self.visible)
        self.instructions.append(Instruction(kind, statement, action, target))
        self.scopes.append(self.current)
        return len(self.instructions) - 1

    def land(self, places: list[int] | int) -> None:
        """Point jumps emitted earlier at the next instruction."""
        for at in [places] if isinstance(places, int) else places:
            old = self.instructions[at]
            self.instructions[at] = Instruction(old.kind, old.statement, old.action, len(self.instructions))

    def declare(self, key: Key) -> None:
        self.visible[-1].add(key)
        self.current = None

    def enter(self) -> None:
        self.visible.append(set())

    def leave(self) -> None:
        self.visible.pop()
        self.current = None

    def block(self, block: ir.Block) -> None:
        self.enter()
        for statement in block.statements:
            self.statement(statement)
        self.leave()

    # --- statements -----------------------------------------------------------------------------------------

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Define():
                self.define(statement)
            case ir.DefineView(variable=variable, access=access):
                where = self.expressions.where(access)
                self.expressions.views[variable] = where

                def bind(group: Group) -> None:
                    lengths = [n if isinstance(n, int) else n(group) for n in where.lengths]
                    group.env[variable] = (*where.index(group), *lengths)

                self.emit(RUN, statement, bind)
                self.declare(variable)
            case ir.Assign():
                self.emit(RUN, statement, assign(self.expressions, statement))
            case ir.Store():
                self.emit(RUN, statement, store(self.expressions, statement))
            case ir.Evaluate(value=expression):
                self.emit(RUN, statement, self.expressions.of(expression))
            case ir.If():
                self.branch(statement)
            case ir.For():
                self.loop(statement)
            case ir.While():
                self.while_loop(statement)
            case ir.Break():
                self.loops[-1][1].append(self.emit(JUMP, statement))
            case ir.Continue():
                self.loops[-1][0].append(self.emit(JUMP, statement))
            case ir.Inline(body=body, result=result):
                if result is not None:
                    self.declare(result)
                self.inlines.append([])
                loops, self.loops = self.loops, []
                self.block(body)
                self.loops = loops
                self.land(self.inlines.pop())
            case ir.Leave(leaves_kernel=True):
                self.emit(END, statement)
            case ir.Leave():
                self.inlines[-1].append(self.emit(JUMP, statement))
            case ir.Barrier():
                at = self.emit(BARRIER, statement)
                self.barriers[at] = BarrierPlace(statement, tuple(self.enclosing))
            case ir.Atomic():
                self.atomic(statement)
            case ir.AssumeUniform(value=expression):
                self.assume(statement, self.expressions.of(expression))
            case ir.UnsupportedCall(name=name):
                raise NotExecutable(f"{name}(..)", statement)
            case _:
                raise NotExecutable(type(statement).__name__, statement)

    def define(self, statement: ir.Define) -> None:
        variable, given = statement.variable, statement.value
        type_ = variable.type
        if isinstance(given, ir.BuiltinCall) and given.name == "flat" and variable.kind != "var":
            self.expressions.lazy[variable] = self.expressions.of(given)
            return
        if isinstance(type_, ir.ScalarT):
            if given is None:
                nought = numbers.zero(type_.dtype)
                self.emit(RUN, statement, lambda group: group.env.__setitem__(variable, nought))
            else:
                inner = self.expressions.converted(given, type_.dtype)
                self.emit(RUN, statement, lambda group: group.env.__setitem__(variable, inner(group)))
            self.declare(variable)
            return
        if isinstance(type_, ir.ErrorT):
            if given is not None:
                self.expressions.of(given)  # which says what it is that cannot be executed
            raise NotExecutable(variable.name or "this value", statement)
        if given is None:
            shape = static_shape(type_)

            def reserve(group: Group) -> None:
                group.env[variable] = np.zeros((1, *shape), DTYPES[type_.dtype])
                group.written[variable] = np.zeros((1, *shape), np.bool_)

            self.emit(RUN, statement, reserve)
        else:
            self.emit(RUN, statement, whole(self.expressions, variable, type_, given))
        self.declare(variable)

    def branch(self, statement: ir.If) -> None:
        skip = self.emit(BRANCH, statement, self.expressions.of(statement.condition))
        self.enclosing.append(statement)
        self.block(statement.then)
        if statement.otherwise.statements:
            over = self.emit(JUMP, statement)
            self.land(skip)
            self.block(statement.otherwise)
            self.land(over)
        else:
            self.land(skip)
        self.enclosing.pop()

    def loop(self, statement: ir.For) -> None:
        lo, hi, step = (self.expressions.of(e) for e in (statement.lo, statement.hi, statement.step))
        variable = statement.variable
        at, end, pace = (statement, "at"), (statement, "end"), (statement, "pace")

        def begin(group: Group) -> None:
            first, last, by = lo(group), hi(group), step(group)
            _check_step(group, statement, by)
            group.env[at], group.env[end], group.env[pace] = first, last, by

        def goes_on(group: Group) -> Value:
            return group.env[at] < group.env[end]

        def walk_on(group: Group) -> None:
            now = group.env[at]
            group.env[variable] = now
            group.env[at] = now + group.env[pace]

        self.emit(RUN, statement, begin)
        self.enter()
        for key in (at, end, pace):
            self.declare(key)
        self.enclosing.append(statement)
        self.loops.append(([], []))
        test = self.emit(BRANCH, statement, goes_on)
        self.emit(RUN, statement, walk_on)
        self.enter()
        self.declare(variable)
        self.block(statement.body)
        continues, breaks = self.loops.pop()
        self.leave()
        self.land(continues)
        self.emit(JUMP, statement, None, test)
        self.enclosing.pop()
        self.leave()
        self.land([test, *breaks])

    def while_loop(self, statement: ir.While) -> None:
        top = len(self.instructions)
        self.enclosing.append(statement)
        self.loops.append(([], []))
        self.enter()
        for inner in statement.prelude.statements:
            self.statement(inner)
        test = self.emit(BRANCH, statement, self.expressions.of(statement.condition))
        self.block(statement.body)
        continues, breaks = self.loops.pop()
        self.leave()
        self.land(continues)
        self.emit(ROUND, statement, None, top)
        self.enclosing.pop()
        self.land([test, *breaks])

    def atomic(self, statement: ir.Atomic) -> None:
        index = self.expressions.of(statement.index)
        operands = [self.expressions.converted(o, "i32") for o in statement.operands]
        name, kind, result = statement.tensor.name, statement.kind, statement.result
        place = Place(statement.span, statement.calls, name)
        used = result is not None

        def act(group: Group) -> None:
            machine = group.machine
            values = [operand(group) for operand in operands]
            old = machine.atomic(group, machine.buffers[name], kind, index(group), values, used, place)
            if result is not None:
                group.env[result] = old

        self.emit(ATOMIC, statement, act)
        if result is not None:
            self.declare(result)

    def assume(self, statement: ir.AssumeUniform, inner: Eval) -> None:
        count: Key = (statement, "count")
        self.assumptions.add(count)

        def check(group: Group) -> None:
            held = inner(group)
            times = group.env.get(count, 0)
            _check_assumption(group, statement, held, times)
            group.env[count] = times + 1

        self.emit(RUN, statement, check)


def _check_step(group: Group, statement: ir.For, by: Value) -> None:
    bad = np.asarray(by) <= 0
    if bad.any():
        lane = int(np.flatnonzero(bad)[0]) if bad.ndim else 0
        number = int(by[lane]) if isinstance(by, np.ndarray) else int(by)
        block = int(group.ids[lane])
        raise Fault(
            "bad-step",
            f"block {block} walks a range by {number}: a step must be positive",
            Site(statement.step.span, statement.step.calls, f"this is {number}"),
            blocks=(block,),
            help="make sure that the step is at least 1 before the loop",
        )


def _check_assumption(group: Group, statement: ir.AssumeUniform, held: Value, times: Value) -> None:
    assumed = group.machine.assumed
    rows: list[tuple[int, Value]]
    if isinstance(held, np.ndarray) and held.shape[0] == group.size:
        rows = [(lane, held[lane]) for lane in range(group.size)]
    elif isinstance(times, np.ndarray):
        rows = [(lane, held) for lane in range(group.size)]
    else:
        rows = [(0, held)]
    for lane, mine in rows:
        nth = int(times[lane]) if isinstance(times, np.ndarray) else times
        block = int(group.ids[lane])
        pattern = np.asarray(mine).tobytes()
        first = assumed.setdefault((statement, nth), (pattern, block, mine))
        if first[0] != pattern:
            raise Fault(
                "assumption-broken",
                f"the assumption does not hold: here block {first[1]} has {_shown(first[2])} and block {block} has "
                f"{_shown(mine)}",
                Site(statement.span, statement.calls, "assumed to have one value for all blocks"),
                blocks=(first[1], block),
                help="take the assumption out, or make the value the same for every block",
            )


def _shown(held: Value) -> str:
    array = np.asarray(held)
    return str(array[()]) if array.size == 1 else f"a tile that begins with {array.reshape(-1)[0]}"


def _has_barrier(loop: ir.While) -> bool:
    return any(isinstance(statement, ir.Barrier) for statement in statements_of(loop.body))


def _touches_tensors(loop: ir.While) -> bool:
    for statement in (loop, *statements_of(loop.prelude), *statements_of(loop.body)):
        if isinstance(statement, (ir.Atomic, ir.Barrier)):
            return True
        if isinstance(statement, (ir.Store, ir.DefineView)) and isinstance(statement.access.base, ir.Tensor):
            return True
        if any(_reads_tensor(part) for part in everything_in(statement)):
            return True
    return False


def _reads_tensor(part: ir.Expression) -> bool:
    match part:
        case ir.Load(access=access):
            return isinstance(access.base, ir.Tensor)
        case ir.VariableRef(variable=variable):
            return variable.kind == "view"
    return isinstance(part, ir.TensorRef)

"""A program as a flat list of instructions, so that a group of blocks can stop, part and meet anywhere.

A coroutine is a group with a place in this list. Structured control flow becomes branches forward and one
jump back per loop, laid out so that the group furthest behind, run first, meets the others again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from phobos.diagnostic import Span
from phobos.runtime.reference import numbers
from phobos.runtime.reference.expressions import (
    Eval,
    Expressions,
    NotExecutable,
    Where,
    _clip,
    agree,
    cannot_fault,
    check_written,
    dtype_of,
    is_fresh,
    rank_of,
    read_tile,
    read_tile_point,
    spread,
)
from phobos.runtime.reference.faults import Fault, Site
from phobos.runtime.reference.group import Group, Key
from phobos.runtime.reference.machine import Place
from phobos.runtime.reference.numbers import DTYPES, FLOATS, Array, Value, ZeroDivision
from phobos.semantics import ir
from phobos.semantics.program import Program, fact
from phobos.value import value

RUN, BRANCH, JUMP, ROUND, ATOMIC, BARRIER, END = range(7)


@value
class Instruction:
    """`action` of RUN and ATOMIC; `condition` of BRANCH, which goes to `target` when it is false."""

    kind: int
    statement: ir.Statement | None
    action: Callable[[Group], Value] | None
    target: int


@value
class BarrierPlace:
    """A barrier call with the constructs it stands in, outermost first."""

    statement: ir.Barrier
    enclosing: tuple[ir.If | ir.For | ir.While, ...]


@value
class Code:
    """`scope` holds, for each instruction, the variables (and loop states) that live there.

    `local_whiles` touch no tensor, so only themselves can end them. `mutable` are the variables whose cells
    are written in place. `largest_tile` is in cells, lengths that are only known at launch counted as 1.
    """

    program: Program
    instructions: tuple[Instruction, ...]
    scope: tuple[frozenset[Key], ...]
    mutable: frozenset[Key]
    barriers: dict[int, BarrierPlace]
    local_whiles: frozenset[ir.While]
    barrier_whiles: frozenset[ir.While]
    has_while: bool
    has_atomic: bool
    stored: frozenset[str]
    atomics: frozenset[str]


def walk(block: ir.Block) -> Iterator[ir.Statement]:
    """All statements of a block, at any depth, in the order of the text."""
    stack = list(reversed(block.statements))
    while stack:
        statement = stack.pop()
        yield statement
        for inner in reversed(_blocks(statement)):
            stack.extend(reversed(inner.statements))


def _blocks(statement: ir.Statement) -> tuple[ir.Block, ...]:
    match statement:
        case ir.For() | ir.Inline():
            return (statement.body,)
        case ir.While():
            return (statement.prelude, statement.body)
        case ir.If():
            return (statement.then, statement.otherwise)
    return ()


def parts(node: Any) -> Iterator[Any]:
    """Every expression and access below a statement (not of the statements inside it), or below an expression."""
    stack: list[Any] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, (tuple, list)):
            stack.extend(current)
            continue
        if isinstance(current, (ir.Expression, ir.Access, ir.PointSub, ir.SliceSub)):
            yield current
        elif current is not node:
            continue
        for name in getattr(type(current), "__slots__", ()):
            held = getattr(current, name)
            if isinstance(held, (ir.Expression, ir.Access, ir.PointSub, ir.SliceSub, tuple)):
                stack.append(held)


@fact
def code_of(program: Program) -> Code:
    """Compiles a program. Raises `NotExecutable` for what is checked but not executed."""
    return _Compiler(program).compile()


def side_by_side(codes: Sequence[Code]) -> tuple[Code, tuple[int, ...]]:
    """Several programs as one list of instructions, and where each begins. None of them holds a barrier."""
    if len(codes) == 1:
        return codes[0], (0,)
    starts: list[int] = []
    instructions: list[Instruction] = []
    for code in codes:
        base = len(instructions)
        starts.append(base)
        for one in code.instructions:
            target = one.target if one.target < 0 else one.target + base
            instructions.append(Instruction(one.kind, one.statement, one.action, target))
    return Code(
        program=codes[0].program,
        instructions=tuple(instructions),
        scope=tuple(scope for code in codes for scope in code.scope),
        mutable=frozenset().union(*(code.mutable for code in codes)),
        barriers={},
        local_whiles=frozenset().union(*(code.local_whiles for code in codes)),
        barrier_whiles=frozenset(),
        has_while=any(code.has_while for code in codes),
        has_atomic=any(code.has_atomic for code in codes),
        stored=frozenset().union(*(code.stored for code in codes)),
        atomics=frozenset().union(*(code.atomics for code in codes)),
    ), tuple(starts)


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
        statements = list(walk(body))
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
            barrier_whiles=frozenset(w for w in whiles if any(isinstance(s, ir.Barrier) for s in walk(w.body))),
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
                self.emit(RUN, statement, self.assign(statement))
            case ir.Store():
                self.emit(RUN, statement, self.store(statement))
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
        if isinstance(given, ir.BuiltinCall) and given.name == "flat" and variable not in self.mutable:
            self.expressions.lazy[variable] = self.expressions.of(given)
            return
        if isinstance(type_, ir.ScalarT):
            if given is None:
                nought = numbers.zero(type_.dtype)
                self.emit(RUN, statement, lambda group: group.env.__setitem__(variable, nought))
            else:
                inner = self.converted(given, type_.dtype)
                self.emit(RUN, statement, lambda group: group.env.__setitem__(variable, inner(group)))
            self.declare(variable)
            return
        if isinstance(type_, ir.ErrorT):
            if given is not None:
                self.expressions.of(given)  # which says what it is that cannot be executed
            raise NotExecutable(variable.name or "this value", statement)
        if given is None:
            shape = _static(type_)

            def reserve(group: Group) -> None:
                group.env[variable] = np.zeros((1, *shape), DTYPES[type_.dtype])
                group.written[variable] = np.zeros((1, *shape), np.bool_)

            self.emit(RUN, statement, reserve)
        else:
            self.emit(RUN, statement, self.whole(variable, type_, given))
        self.declare(variable)

    def converted(self, expression: ir.Expression, target: str) -> Eval:
        inner = self.expressions.of(expression)
        source = dtype_of(expression.type)
        if source == target:
            return inner
        convert = numbers.convert
        return lambda group: convert(inner(group), source, target)

    def whole(self, variable: ir.Variable, type_: ir.TileT, given: ir.Expression) -> Callable[[Group], None]:
        """Give a tile variable its cells: a scalar fills, a tile is copied unless nothing else holds it."""
        inner = self.converted(given, type_.dtype)
        dtype = DTYPES[type_.dtype]
        if not rank_of(given.type):
            shape = _static(type_)

            def fill(group: Group) -> None:
                held = inner(group)
                count = group.size if isinstance(held, np.ndarray) else 1
                tile = np.empty((count, *shape), dtype)
                tile[...] = spread(held, len(shape))
                group.env[variable] = tile
                group.written.pop(variable, None)

            return fill
        fresh = is_fresh(given) or dtype_of(given.type) != type_.dtype
        lengths = type_.shape

        def keep(group: Group) -> None:
            held = inner(group)
            if not fresh:
                held = held.copy()
            if any(isinstance(n, int) and n != m for n, m in zip(lengths, held.shape[1:])):
                held = np.broadcast_to(held, (held.shape[0], *_static(type_))).copy()
            group.env[variable] = held
            group.written.pop(variable, None)

        return keep

    def assign(self, statement: ir.Assign) -> Callable[[Group], None]:
        variable, op, given = statement.variable, statement.op, statement.value
        type_ = variable.type
        if op is None:
            if isinstance(type_, ir.TileT):
                return self.whole(variable, type_, given)
            inner = self.converted(given, dtype_of(type_))
            return lambda group: group.env.__setitem__(variable, inner(group))
        kept = dtype_of(type_)
        work = numbers.join(kept, dtype_of(given.type))
        inner = self.converted(given, work)
        convert = numbers.convert
        apply = _applier(op, work, statement)
        if isinstance(type_, ir.ScalarT):

            def scalar(group: Group) -> None:
                old = convert(group.env[variable], kept, work)
                group.env[variable] = convert(apply(group, old, inner(group)), work, kept)

            return scalar
        rank = rank_of(type_)
        scalar_value = not rank_of(given.type)
        place = Place(statement.span, statement.calls, variable.name)
        in_place = work == kept and work in FLOATS and op != "%"
        operation = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}.get(op)

        def tile(group: Group) -> None:
            if group.written and variable in group.written:
                check_written(group, variable, group.written[variable], place)
            change = inner(group)
            if scalar_value:
                change = spread(change, rank)
            old = group.env[variable]
            if in_place and (not isinstance(change, np.ndarray) or change.shape[0] <= old.shape[0]):
                assert operation is not None
                operation(old, change, out=old)
                return
            new = convert(apply(group, convert(old, kept, work), change), work, kept)
            group.env[variable] = new

        return tile

    def store(self, statement: ir.Store) -> Callable[[Group], None]:
        access, op, given = statement.access, statement.op, statement.value
        where = self.expressions.where(access)
        base = access.base
        kept = base.dtype if isinstance(base, ir.Tensor) else dtype_of(base.type)
        work = kept if op is None else numbers.join(kept, dtype_of(given.type))
        inner = self.converted(given, work)
        apply = _applier(op, work, statement) if op is not None else None
        rank = len(access.subs)
        if isinstance(base, ir.Tensor):
            if access.is_point:
                return _store_point(where, base.name, kept, work, inner, apply)
            return _store_slice(where, base.name, kept, work, inner, apply, rank)
        self.mutable.add(base)
        if access.is_point:
            return _store_tile_point(where, base, kept, work, inner, apply)
        return _store_tile_slice(where, base, kept, work, inner, apply, rank)

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
        operands = [self.converted(o, "i32") for o in statement.operands]
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


# --- stores -----------------------------------------------------------------------------------------------------

Apply = Callable[[Group, Value, Value], Value]


def _applier(op: str, dtype: str, statement: ir.Assign | ir.Store) -> Apply:
    if dtype in FLOATS:
        return lambda group, old, change: numbers.floating(op, old, change)

    def whole(group: Group, old: Value, change: Value) -> Value:
        try:
            return numbers.integer(op, old, change, dtype)
        except ZeroDivision as error:
            lane = 0
            if error.where is not None and error.where.shape[0] == group.size:
                lane = int(np.argwhere(error.where)[0][0])
            block = int(group.ids[lane])
            raise Fault(
                "division-by-zero",
                f"block {block} {'divides by 0' if op == '/' else 'takes a remainder by 0'}",
                Site(statement.value.span, statement.value.calls, "this is 0"),
                blocks=(block,),
                help="integers have no infinity: test the divisor first; a cell past the end of a tensor reads as 0",
            ) from None

    return whole


def _store_point(
    where: Where, name: str, kept: str, work: str, inner: Eval, apply: Apply | None
) -> Callable[[Group], None]:
    place = where.place
    convert = numbers.convert

    def run(group: Group) -> None:
        machine = group.machine
        buffer = machine.buffers[name]
        index = where.index(group)
        if apply is not None:
            old = convert(machine.load_point(group, buffer, index, place), kept, work)
            held = apply(group, old, inner(group))
        else:
            held = inner(group)
        machine.store_point(group, buffer, index, convert(held, work, kept), place)

    return run


def _store_slice(
    where: Where, name: str, kept: str, work: str, inner: Eval, apply: Apply | None, rank: int
) -> Callable[[Group], None]:
    place = where.place
    dtype = DTYPES[kept]

    def run(group: Group) -> None:
        machine = group.machine
        buffer = machine.buffers[name]
        starts, lengths = where.index(group), where.sizes(group)
        held = spread(inner(group), rank)
        if apply is not None:
            old = numbers.convert_array(machine.load(group, buffer, starts, lengths, place), kept, work)
            held = apply(group, old, held)
        if not isinstance(held, np.ndarray):
            held = np.asarray(numbers.convert(held, work, kept), dtype).reshape((1,) * (rank + 1))
        elif held.dtype != dtype:
            held = numbers.convert_array(held, work, kept)
        if held.shape[1:] != lengths:
            held = np.broadcast_to(held, (held.shape[0], *lengths))
        machine.store(group, buffer, starts, lengths, held, place)

    return run


def _owned(group: Group, variable: ir.Variable, per_block: bool) -> Array:
    """The cells of a tile variable, to be written in place; one tile a block where blocks will differ."""
    held: Array = group.env[variable]
    if per_block and held.shape[0] != group.size:
        held = np.repeat(held, group.size, axis=0)
        group.env[variable] = held
    return held


def _mark(group: Group, variable: ir.Variable, lanes: Any, box: tuple[Any, ...], per_block: bool) -> None:
    mask = group.written.get(variable)
    if mask is None:
        return
    if per_block and mask.shape[0] != group.size:
        mask = np.repeat(mask, group.size, axis=0)
        group.written[variable] = mask
    mask[(lanes, *box)] = True
    if mask.all():
        del group.written[variable]


def _store_tile_point(
    where: Where, base: ir.Variable, kept: str, work: str, inner: Eval, apply: Apply | None
) -> Callable[[Group], None]:
    place = where.place
    convert = numbers.convert

    def run(group: Group) -> None:
        index = [agree(group, number) for number in where.index(group)]
        extents = group.env[base].shape[1:]
        group.machine.check_point(group, base.name, extents, index, place)
        held = inner(group)
        if apply is not None:
            old = convert(read_tile_point(group, base, group.env[base], index, place), kept, work)
            held = apply(group, old, held)
        held = convert(held, work, kept)
        per_block = isinstance(held, np.ndarray) or any(isinstance(number, np.ndarray) for number in index)
        cells = _owned(group, base, per_block)
        lanes: Any = np.arange(group.size) if cells.shape[0] == group.size else 0
        cells[(lanes, *index)] = held
        if group.written:
            per = per_block or (base in group.written and group.written[base].shape[0] == group.size)
            _mark(group, base, np.arange(group.size) if per else 0, tuple(index), per)

    return run


def _store_tile_slice(
    where: Where, base: ir.Variable, kept: str, work: str, inner: Eval, apply: Apply | None, rank: int
) -> Callable[[Group], None]:
    place = where.place
    dtype = DTYPES[kept]

    def run(group: Group) -> None:
        starts = [agree(group, start) for start in where.index(group)]
        lengths = where.sizes(group)
        held = spread(inner(group), rank)
        if apply is not None:
            old = numbers.convert_array(read_tile(group, base, group.env[base], starts, lengths, place), kept, work)
            held = apply(group, old, held)
        if not isinstance(held, np.ndarray):
            held = np.asarray(numbers.convert(held, work, kept), dtype).reshape((1,) * (rank + 1))
        else:
            held = numbers.convert_array(held, work, kept)
        held = np.broadcast_to(held, (held.shape[0], *lengths))
        differ = any(isinstance(start, np.ndarray) for start in starts)
        mask = group.written.get(base)
        per_block = differ or held.shape[0] > 1
        cells = _owned(group, base, per_block)
        if np.may_share_memory(cells, held):
            held = held.copy()
        extents = cells.shape[1:]
        if not differ:
            clips = [_clip(start, n, extent) for start, n, extent in zip(starts, lengths, extents)]
            box = tuple(source for source, _ in clips)
            cells[(slice(None), *box)] = held[(slice(None), *(to for _, to in clips))]
            if mask is not None:
                _mark(group, base, slice(None), box, False)
            return
        for lane in range(group.size):
            clips = [
                _clip(int(s[lane]) if isinstance(s, np.ndarray) else s, n, extent)
                for s, n, extent in zip(starts, lengths, extents)
            ]
            box = tuple(source for source, _ in clips)
            come: tuple[Any, ...] = (lane if held.shape[0] > 1 else 0, *(to for _, to in clips))
            cells[lane][box] = held[come]
            if mask is not None:
                _mark(group, base, lane, box, True)

    return run


# --- checks -----------------------------------------------------------------------------------------------------


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


def _static(type_: ir.TileT) -> tuple[int, ...]:
    lengths = []
    for n in type_.shape:
        number = n if isinstance(n, int) else n.constant
        assert number is not None, "a tile variable of runtime length"
        lengths.append(number)
    return tuple(lengths)


def _touches_tensors(loop: ir.While) -> bool:
    statements = [loop, *walk(loop.prelude), *walk(loop.body)]
    for statement in statements:
        if isinstance(statement, (ir.Atomic, ir.Barrier)):
            return True
        for part in parts(statement):
            if isinstance(part, ir.Access) and isinstance(part.base, ir.Tensor):
                return True
            if isinstance(part, ir.TensorRef):
                return True
            if isinstance(part, ir.VariableRef) and part.variable.kind == "view":
                return True
    return False


__all__ = [
    "ATOMIC",
    "BARRIER",
    "BRANCH",
    "END",
    "JUMP",
    "ROUND",
    "RUN",
    "BarrierPlace",
    "Code",
    "Instruction",
    "Span",
    "cannot_fault",
    "code_of",
    "parts",
    "walk",
]

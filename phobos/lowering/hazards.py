"""Where the threads of a CTA must wait for each other, and which statements read all before they store any.

A CTA behaves as one: a statement sees everything that the statements before it did. Threads own elements, so
most statements need nobody else. A wait is needed when a statement touches a cell of a tensor or of shared
memory that another thread may have touched since the last wait, one of the two writing. Two touches are known
to be harmless when every cell belongs to the same thread in both (equal layouts over equal places, or over places
that are whole tiles of one pattern), or when the places are provably disjoint. Loops are walked twice, the second
time with what the round before left.
"""

from __future__ import annotations

from phobos.lowering import ops, walk
from phobos.lowering.layouts import Layouts, elementwise_leaves, stored_shape
from phobos.lowering.shared import Place, Scratch, SharedPlan
from phobos.semantics import ir
from phobos.semantics.poly import Poly
from phobos.semantics.values import Values
from phobos.value import replace, value

Box = tuple[tuple[Poly, Poly], ...]


@value
class Touch:
    """Cells that a statement reads or writes. `owner` says which thread touches which cell (None: any)."""

    what: ir.Tensor | Place
    writes: bool
    owner: tuple[object, ...] | None
    tiled: bool  # `owner` holds wherever the places move: they are whole tiles of one pattern
    box: Box | None
    carried: tuple[ir.Statement, ...] = ()  # the loops it comes round


@value
class Waits:
    """`body` with its `Sync`s; `two_phase` are the stores that evaluate everything, wait, then store.

    `between_blocks` says why there must be one more wait where the same CTA runs another block next; None: none.
    """

    body: ir.Block
    two_phase: frozenset[ir.Statement]
    between_blocks: str | None


_LEADER = ("thread 0",)


def place(
    body: ir.Block,
    layouts: Layouts,
    shared: SharedPlan,
    values: Values,
    stages: dict[ir.Statement, Scratch],
    origins: dict[ir.Statement, ir.Statement],
) -> Waits:
    """Waits for a normalised body; `origins` are its loops in the program."""
    pass_ = _Pass(layouts, shared, values, stages, origins)
    pass_.views = {s.variable: s.access for s in walk.statements(body) if isinstance(s, ir.DefineView)}
    end = _union(pass_.block(body, []), pass_.ended)
    between = pass_.next_block(body, end)
    return Waits(pass_.rebuild(body), frozenset(pass_.two_phase), between)


class _Pass:
    def __init__(
        self,
        layouts: Layouts,
        shared: SharedPlan,
        values: Values,
        stages: dict[ir.Statement, Scratch],
        origins: dict[ir.Statement, ir.Statement],
    ) -> None:
        self.layouts, self.shared, self.values, self.stages, self.origins = layouts, shared, values, stages, origins
        self.views: dict[ir.Variable, ir.Access] = {}
        self.waits: dict[ir.Statement, str] = {}
        self.two_phase: set[ir.Statement] = set()
        self.breaks: list[list[Touch]] = []
        self.continues: list[list[Touch]] = []
        self.leaves: list[list[Touch]] = []
        self.ended: list[Touch] = []  # what is pending where the block ends before its last statement
        self.known: dict[ir.Statement, list[list[Touch]]] = {}

    # --- walking ----------------------------------------------------------------------------------

    def block(self, block: ir.Block, pending: list[Touch]) -> list[Touch]:
        for statement in block.statements:
            pending = self.statement(statement, pending)
        return pending

    def statement(self, statement: ir.Statement, pending: list[Touch]) -> list[Touch]:
        match statement:
            case ir.Barrier():
                return []  # it waits itself, before and after
            case ir.Atomic():  # so does this, but all threads then read its result
                scratch = self.stages.get(statement)
                return [] if scratch is None else [Touch(self.shared.places[scratch], False, None, False, None)]
            case ir.Break():
                self.breaks[-1] += pending
                return []
            case ir.Continue():
                self.continues[-1] += pending
                return []
            case ir.Leave(leaves_kernel=leaves_kernel):
                if leaves_kernel:
                    self.ended = _union(self.ended, pending)
                else:
                    self.leaves[-1] += pending
                return []
        pending = self.own(statement, pending)
        match statement:
            case ir.If(then=then, otherwise=otherwise):
                return _union(self.block(then, list(pending)), self.block(otherwise, list(pending)))
            case ir.Inline(body=body):
                self.leaves.append([])
                return _union(self.block(body, pending), self.leaves.pop())
            case ir.For(body=body):
                left = self.loop(statement, ir.Block(()), body, pending)
                ring = self.stages.get(statement)
                return (
                    left if ring is None else _union(left, [Touch(self.shared.places[ring], False, None, False, None)])
                )
            case ir.While(prelude=prelude, body=body):
                return self.loop(statement, prelude, body, pending)
        return pending

    def next_block(self, body: ir.Block, pending: list[Touch]) -> str | None:
        """Why a second block after this one, by the same threads, would need waits that the first does not.

        Places in shared memory stay what they are, but where in them a block touches may be another place in each.
        What it stores to tensors no other block may touch.
        """
        left = [
            replace(touch, box=None, owner=touch.owner if touch.tiled else None)
            for touch in pending if isinstance(touch.what, Place)
        ]  # fmt: skip
        if not left:
            return None
        waits, two_phase = dict(self.waits), set(self.two_phase)
        self.block(body, left)
        more = [reason for statement, reason in self.waits.items() if statement not in waits]
        self.waits, self.two_phase = waits, two_phase
        return more[0] if more else None

    def loop(self, loop: ir.For | ir.While, prelude: ir.Block, body: ir.Block, entry: list[Touch]) -> list[Touch]:
        if loop in self.stages:  # it stages operands: all wait for each other once before it
            entry = []
        start = list(entry)
        for _ in range(3):
            self.breaks.append([])
            self.continues.append([])
            end = self.block(prelude, list(start))
            if isinstance(loop, ir.While):
                end = self.condition(loop, end)
            left = list(end)
            end = _union(self.block(body, end), self.continues.pop())
            left = _union(left, self.breaks.pop())
            before = len(start)
            start = _union(entry, [replace(t, carried=(*t.carried, loop)) if loop not in t.carried else t for t in end])
            if len(start) == before:
                break
        return _union(left, end)

    def condition(self, loop: ir.While, pending: list[Touch]) -> list[Touch]:
        touches = [t for root in (loop.condition,) for t in self.reads(root, None)]
        if reason := self.conflict(touches, pending):
            self.waits.setdefault(loop, reason)
            pending = []
        return _union(pending, touches)

    def own(self, statement: ir.Statement, pending: list[Touch]) -> list[Touch]:
        """The statement's own touches: wait before it where they meet pending ones."""
        if isinstance(statement, ir.While):
            return pending
        if statement not in self.known:
            self.known[statement] = self.touches(statement)
        for stage, touches in enumerate(self.known[statement]):
            if stage:
                pending = []  # it waits itself between its stages
            elif reason := self.conflict(touches, pending):
                self.waits.setdefault(statement, reason)
            if stage == 0 and statement in self.waits:
                pending = []
            pending = _union(pending, touches)
        return pending

    # --- touches ----------------------------------------------------------------------------------

    def touches(self, statement: ir.Statement) -> list[list[Touch]]:
        match statement:
            case ir.Define(variable=variable, value=expression) | ir.Assign(variable=variable, value=expression) if (
                walk.is_tile(variable.type)
            ):
                if expression is None:
                    return [[]]
                reads = self.reads(expression, statement)
                if variable not in self.shared.places:
                    return [reads]
                write = self.whole(variable, True, statement)
                if isinstance(statement, ir.Assign) and statement.op:
                    reads = [*reads, replace(write, writes=False)]
                return self.stored(statement, reads, write)
            case ir.Store(access=access, value=expression):
                own = not access.is_point and stored_shape(statement) is not None
                reads = self.reads(expression, statement if own else None)
                for sub in walk.subscripts(access):
                    reads = reads + self.reads(sub, None)
                target = self.access(access, True, statement)
                if target is None:
                    return [reads]
                if statement.op:
                    reads = [*reads, replace(target, writes=False)]
                if access.is_point:  # thread 0 does all of it
                    return [[*(replace(read, owner=_LEADER, tiled=True) for read in reads), target]]
                if not own:  # a stretch reads of its own tensor what it may: see `stretches`
                    return [[*reads, target]]
                return self.stored(statement, reads, target)
            case ops.Reduce(source=source, result=result):
                reads = self.reads(source, statement)
                kept = [self.whole(result, True, None)] if result in self.shared.places else []
                scratch = self.stages.get(statement)
                if scratch is None:
                    return self.stored(statement, reads, kept[0]) if kept else [reads]
                place = self.shared.places[scratch]
                return [
                    [*reads, Touch(place, True, None, False, None)],
                    [*kept, Touch(place, False, None, False, None)],
                ]
            case ops.RunningSum(tile=tile):
                place = self.shared.places[tile]
                return [[Touch(place, False, None, False, None), Touch(place, True, None, False, None)]]
            case ops.Dot(left=left, right=right, result=result):
                reads = [*self.reads(left, None), *self.reads(right, None)]
                after = [t for t in reads if isinstance(t.what, Place)]
                scratch = self.stages.get(statement)
                stages = [reads]
                if scratch is not None:
                    place = self.shared.places[scratch]
                    stages = [
                        [*reads, Touch(place, True, None, False, None)],
                        [*after, Touch(place, False, None, False, None)],
                    ]
                if result in self.shared.places:
                    stages[-1] = [*stages[-1], self.whole(result, True, statement)]
                if not isinstance(left.type, ir.TileT) or not isinstance(left.type.shape[-1], int):
                    return [[touch for stage in stages for touch in stage]]  # K may be 0, and then nobody waits
                return stages
            case _:
                return [[t for root in walk.expressions(statement) for t in self.reads(root, None)]]

    def stored(self, statement: ir.Statement, reads: list[Touch], write: Touch) -> list[list[Touch]]:
        """A store after its reads; where they may be of one cell in two threads, all is read before any is stored."""
        if self.conflict([write], reads):
            self.two_phase.add(statement)
            return [reads, [write]]
        return [[*reads, write]]

    def reads(self, root: ir.Expression, statement: ir.Statement | None) -> list[Touch]:
        """What evaluating `root` reads: at each thread's own elements of `statement`'s layout, or anywhere (None)."""
        own = set(map(id, elementwise_leaves(root))) if statement is not None else set()
        found: list[Touch] = []
        for one in walk.every(root):
            at = statement if id(one) in own else None
            match one:
                case ir.Load(access=access):
                    touch = self.access(access, False, at)
                case ir.VariableRef(variable=variable) if variable.kind == "view":
                    touch = self.access(self.views[variable], False, at)
                case ir.VariableRef(variable=variable) if variable in self.shared.places:
                    touch = self.whole(variable, False, at)
                case ir.TensorRef(tensor=tensor):
                    touch = Touch(tensor, False, None, False, None)
                case _:
                    continue
            if touch is not None:
                found.append(touch)
        return found

    def whole(self, variable: ir.Variable, writes: bool, statement: ir.Statement | None) -> Touch:
        place = self.shared.places[variable]
        if statement is None:
            return Touch(place, writes, None, False, None)
        layout = self.layouts.of(statement)
        assert isinstance(variable.type, ir.TileT)
        same = ops.matrix_shape(variable.type.shape) == (layout.rows, layout.columns) and not layout.replicated
        return Touch(place, writes, (layout.key, "whole") if same else None, same, None)

    def access(self, access: ir.Access, writes: bool, statement: ir.Statement | None) -> Touch | None:
        what: ir.Tensor | Place
        if isinstance(access.base, ir.Tensor):
            what = access.base
        elif access.base in self.shared.places:
            what = self.shared.places[access.base]
        else:
            return None  # one element in every thread's registers
        box: list[tuple[Poly, Poly]] = []
        for sub in access.subs:
            if isinstance(sub, ir.PointSub):
                if not _is_index(sub.index):
                    box = []
                    break
                box.append((self.values.poly(sub.index), Poly.of(1)))
            else:
                length = Poly.of(sub.static) if sub.static is not None else self.values.poly(sub.length)
                box.append((self.values.poly(sub.first), length))
        known = tuple(box) or None
        if access.is_point:
            return Touch(what, writes, _LEADER if writes else None, writes, known)
        if statement is None or known is None or any(length.constant is None for _, length in known):
            return Touch(what, writes, None, False, known)
        if isinstance(statement, ir.Store) and stored_shape(statement) is None:
            return Touch(what, writes, None, False, known)
        layout = self.layouts.of(statement)
        shape = ops.matrix_shape(tuple(length.constant for _, length in known))
        if shape != (layout.rows, layout.columns) or layout.replicated:
            return Touch(what, writes, None, False, known)
        pattern = self.pattern(known)
        if pattern is not None:
            return Touch(what, writes, (layout.key, pattern), True, known)
        return Touch(what, writes, (layout.key, tuple((f.key, n.key) for f, n in known)), False, known)

    def pattern(self, box: Box) -> tuple[tuple[int, int], ...] | None:
        """(length, start modulo length) of each axis where every start is one number modulo the length."""
        found: list[tuple[int, int]] = []
        for first, length in box:
            n = length.constant
            assert n is not None
            shift = first.terms.get((), 0)
            if n == 0 or self.values.divisor(first - shift) % n:
                return None
            found.append((n, shift % n))
        return tuple(found)

    # --- conflicts --------------------------------------------------------------------------------

    def conflict(self, touches: list[Touch], pending: list[Touch]) -> str | None:
        for now in touches:
            for then in pending:
                if (now.writes or then.writes) and _meet(now.what, then.what) and not self.harmless(then, now):
                    return f"other threads have {'written' if then.writes else 'read'} {_name(now.what)}"
        return None

    def harmless(self, then: Touch, now: Touch) -> bool:
        if isinstance(then.what, Place) and isinstance(now.what, Place) and then.what is not now.what:
            return False
        if then.owner is not None and then.owner == now.owner and (then.tiled or not then.carried):
            return True
        return (
            then.box is not None
            and now.box is not None
            and any(self.apart(a, b, then.carried) for a, b in zip(then.box, now.box, strict=True))
        )

    def apart(self, then: tuple[Poly, Poly], now: tuple[Poly, Poly], carried: tuple[ir.Statement, ...]) -> bool:
        """Whether two stretches of an axis never meet, the first from `carried` rounds before."""
        distance = now[0] - then[0]
        if not carried:
            return self.least(distance - then[1]) or self.least(-distance - now[1])
        if len(carried) > 1 or not isinstance(carried[0], ir.For):
            return False
        origin = self.origins[carried[0]]
        assert isinstance(origin, ir.For)
        fact = self.values.loop(origin)
        move = now[0].coefficient(fact.variable)  # from one round to the next
        if fact.step is None or move != then[0].coefficient(fact.variable):
            return False
        if not (now[0].is_linear_in(fact.variable) and then[0].is_linear_in(fact.variable)):
            return False
        for poly in (move, then[0].without(fact.variable), now[0].without(fact.variable), then[1], now[1]):
            if poly.mentions("unknown") or not self.values.knowledge.is_invariant(poly, fact.index):
                return False
        forward = self.least(move) and self.least(distance + move - then[1])
        return forward or (self.least(-move) and self.least(-distance - move - now[1]))

    def least(self, poly: Poly) -> bool:
        bound = self.values.at_least(poly)
        return bound is not None and bound >= 0

    # --- the result -------------------------------------------------------------------------------

    def rebuild(self, block: ir.Block) -> ir.Block:
        out: list[ir.Statement] = []
        for statement in block.statements:
            reason = self.waits.get(statement)
            if reason is not None and not isinstance(statement, ir.While):
                out.append(ops.Sync(statement.span, statement.calls, reason))
            out.append(self.inside(statement, reason))
        return ir.Block(tuple(out))

    def inside(self, statement: ir.Statement, reason: str | None) -> ir.Statement:
        """The same statement over rebuilt blocks: changed in place, as layouts and plans are keyed by it."""
        match statement:
            case ir.For() | ir.Inline():
                object.__setattr__(statement, "body", self.rebuild(statement.body))
            case ir.If():
                object.__setattr__(statement, "then", self.rebuild(statement.then))
                object.__setattr__(statement, "otherwise", self.rebuild(statement.otherwise))
            case ir.While():
                prelude = self.rebuild(statement.prelude)
                if reason is not None:
                    prelude = ir.Block((*prelude.statements, ops.Sync(statement.span, statement.calls, reason)))
                object.__setattr__(statement, "prelude", prelude)
                object.__setattr__(statement, "body", self.rebuild(statement.body))
        return statement


def _union(first: list[Touch], second: list[Touch]) -> list[Touch]:
    seen: dict[tuple[object, ...], Touch] = {}
    for touch in (*first, *second):
        box = None if touch.box is None else tuple((f.key, n.key) for f, n in touch.box)
        carried = touch.carried if len(touch.carried) < 2 else "several"  # `apart` asks for no more
        seen.setdefault((id(touch.what), touch.writes, touch.owner, touch.tiled, box, carried), touch)
    return list(seen.values())


def _meet(now: ir.Tensor | Place, then: ir.Tensor | Place) -> bool:
    if isinstance(now, Place) and isinstance(then, Place):
        return now.overlaps(then)
    return now is then


def _is_index(expression: ir.Expression) -> bool:
    return isinstance(expression.type, ir.ScalarT) and expression.type.dtype in ("index", "i64", "i32")


def _name(what: ir.Tensor | Place) -> str:
    if isinstance(what, ir.Tensor):
        return f"`{what.name}`"
    if isinstance(what.thing, ir.Variable):
        return f"`{what.thing.name}`" if what.thing.name else "a temporary tile"
    return what.thing.purpose

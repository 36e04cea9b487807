"""Along which dimensions a kernel can be cut into shards that know nothing of each other, and why not along others.

A shard is the kernel run on a slice of every tensor that has the dimension, as if the slice were all there is. That
gives the cells of the whole run where moving a block along the dimension moves all it touches with it and changes
nothing else. So each number is followed as a *shift*: what is added to it, in blocks and in extents, when its block
is taken out of a shard and put into its place in the whole. What decides a branch, what is stored, what is an index
of another axis must have the shift 0; a place along the dimension must shift as its block does. The one thing a
block may ask about its place is whether a cell near it exists; how near, says how much of its neighbours' cells a
shard needs beside its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from phobos.diagnostic import Span
from phobos.language.scalars import INTEGERS
from phobos.semantics import ir
from phobos.semantics.conditions import All, AnyOf, Compare, Condition, Opaque, Truth
from phobos.semantics.conflicts import conflicts_of
from phobos.semantics.fusion import FusedProgram
from phobos.semantics.grid import NAMES, describe, grid_of
from phobos.semantics.knowledge import poly_of_key
from phobos.semantics.masks import points_of
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.values import Context, Values, values_of
from phobos.semantics.walking import children_of, evaluated_by, is_bool, is_integer, loads_of, statements_in, walk
from phobos.value import value

FARTHEST = 1 << 20  # cells beyond its own that a block may ask for


@value
class Cut:
    """How a dimension is cut: at multiples of `unit`, which is a whole number of tiles of `tile` cells.

    A block owns `tile` cells along it and looks at most `below` cells before and `above` cells behind them. `axis` is
    the grid's; `axes` says of each tensor that has the dimension which of its axes it is; `stored` are those of them
    that the kernel writes.
    """

    dim: str
    axis: int
    tile: int
    unit: int
    below: int
    above: int
    axes: dict[str, int]
    stored: tuple[str, ...]


@value
class Tied:
    """Why a dimension cannot be cut: a sentence, and its place in the kernel."""

    dim: str
    reason: str
    span: Span
    calls: tuple[Span, ...]


@fact
def cuts_of(program: Program) -> dict[str, Cut | Tied]:
    """The answer for each extent of the kernel, in the order of its parameters."""
    found: dict[str, Cut | Tied] = {}
    for dim in program.dims.values():
        try:
            found[dim.name] = _Cutter(program, dim).cut()
        except _Holds as error:
            found[dim.name] = Tied(dim.name, error.reason, error.span, error.calls)
    return found


class _Holds(Exception):
    """Something ties the shards together."""

    def __init__(self, reason: str, span: Span, calls: tuple[Span, ...] = ()) -> None:
        super().__init__(reason)
        self.reason, self.span, self.calls = reason, span, calls


@value
class _Shift:
    """`blocks` times the block index, and `ends` times the extent, are in it; the rest is alike in shard and whole."""

    blocks: int
    ends: int

    @property
    def is_still(self) -> bool:
        return self.blocks == 0 and self.ends == 0


@value
class _Loose:
    """A value that changes in no such simple way; `span` is where it began to."""

    reason: str
    span: Span
    calls: tuple[Span, ...]


STILL = _Shift(0, 0)
_State = _Shift | _Loose | None  # None: not met yet


class _Cutter:
    def __init__(self, program: Program, dim: ir.Dim) -> None:
        self.program = program
        self.dim = dim
        self.values: Values = values_of(program)
        self.extent: Atom = ("dim", dim.name)
        self.block: Atom = ("block", -1)  # until the axis is known
        self.tile = 0
        self.below = self.above = 0
        self.states: dict[ir.Variable, _State] = {}
        self.at: ir.Statement | None = None
        self.statements = [s for s in statements_in(program) if s not in self.values.unreachable]

    def cut(self) -> Cut:
        axes = self._axes()
        self._nothing_global()
        axis = self._walked(axes)
        self._settle()
        for statement in self.statements:
            self.at = statement
            self._check(statement, axes)
        self._grid(axis)
        if self.below or self.above:
            self._sound_beyond()
        for conflict in conflicts_of(self.program):
            if conflict.kind != "alias":
                name = conflict.first.access.base.name
                raise _Holds(
                    f"blocks are not proved to stay apart in `{name}`: {conflict.reason}",
                    conflict.second.access.span, conflict.second.access.calls,
                )  # fmt: skip
        unit = self.tile
        for promise in self.program.promises:
            if promise.dim == self.dim.name and promise.tile > 0:
                unit = math.lcm(unit, promise.tile)
        stored = {s.access.base.name for s in self.statements if isinstance(s, ir.Store)}
        if not stored & set(axes):
            raise _Holds(f"the kernel writes nothing along `{self.dim.name}`", self.dim.span)
        return Cut(
            self.dim.name, axis, self.tile, unit, self.below, self.above, axes,
            tuple(name for name in axes if name in stored),
        )  # fmt: skip

    # --- what ties all blocks together -------------------------------------------------------------------

    def _axes(self) -> dict[str, int]:
        program, name = self.program, self.dim.name
        if isinstance(program, FusedProgram):
            raise _Holds("a fusion of kernels is not cut: cut each of them", self.dim.span)
        if name in program.params:
            raise _Holds(f"`{name}` is a number of the kernel as well as an extent", program.params[name].span)
        found: dict[str, int] = {}
        for tensor in program.tensors.values():
            places = [i for i, e in enumerate(tensor.extents) if isinstance(e, ir.Dim) and e.name == name]
            if len(places) > 1:
                raise _Holds(f"`{tensor.name}` has `{name}` twice, a shard would be a square of it", tensor.span)
            if places:
                found[tensor.name] = places[0]
        return found

    def _nothing_global(self) -> None:
        for statement in self.statements:
            match statement:
                case ir.Barrier():
                    raise _Holds("a barrier makes all blocks of the grid wait", statement.span, statement.calls)
                case ir.Atomic(tensor=tensor):
                    raise _Holds(
                        f"an atomic on `{tensor.name}` is one for all blocks of the grid", statement.span,
                        statement.calls,
                    )  # fmt: skip
                case ir.UnsupportedCall(name=name):
                    raise _Holds(f"nobody knows what `{name}` does", statement.span, statement.calls)
        if self.program.is_persistent:
            attribute = self.program.flags["persistent"]
            raise _Holds(
                "the kernel is `@persistent`: which cells a block takes depends on how many blocks there are",
                Span(None, attribute.start, attribute.end),
            )

    def _sound_beyond(self) -> None:
        """A shard runs blocks on its neighbours' cells as well, in vain, and what those ask for behind the neighbours'
        cells is not there but reads as 0. So nothing may hang on a promise of the data: it could fail there alone."""
        ends = "where a shard ends, those are not there"
        for statement in self.statements:
            if isinstance(statement, ir.While):
                raise _Holds(
                    f"a block looks at its neighbours' cells, and nothing proves that this loop ends: {ends}",
                    statement.keyword, statement.calls,
                )  # fmt: skip
            for what, expression, place in self._promised(statement):
                if not self._alike(expression):
                    raise _Holds(
                        f"a block looks at its neighbours' cells, and nothing proves {what}: {ends}", place.span,
                        place.calls,
                    )  # fmt: skip

    def _promised(self, statement: ir.Statement) -> Iterator[tuple[str, ir.Expression, ir.Expression | ir.Access]]:
        """What must be so for the statement not to fail, where that is not proved, and the number it hangs on."""
        holds, context = self.values.holds, self.values.context(statement)
        if isinstance(statement, ir.For) and not holds(self.values.poly(statement.step) - 1, context):
            yield "that this step is at least 1", statement.step, statement.step
        if isinstance(statement, ir.AssumeUniform):
            yield "that this is the same for all blocks", statement.value, statement.value
        divided = [e for root in evaluated_by(statement) for e in walk(root) if isinstance(e, ir.BinaryOp)]
        divisors: list[tuple[ir.Expression, ir.Expression]] = [
            (e, e.right) for e in divided if e.op in ("/", "%") and _integers(e.type)
        ]
        match statement:
            case ir.Assign(op="/" | "%", value=new) | ir.Store(op="/" | "%", value=new) if _integers(new.type):
                divisors.append((new, new))
        for place, divisor in divisors:
            poly = self.values.poly(divisor) if is_integer(divisor.type) else None
            if poly is None or not (holds(poly - 1, context) or holds(-poly - 1, context)):
                yield "that this divisor is not 0", divisor, place
        accesses = list(loads_of(self.program)[statement])
        if isinstance(statement, ir.Store | ir.DefineView):
            accesses.append(statement.access)
        for access in accesses:
            for sub, bound in zip(access.subs, points_of(self.program)[access], strict=True):
                if isinstance(sub, ir.PointSub) and bound is not None and bound.state != "inside":
                    cell = self.values.poly(sub.index)
                    # A shard has no more blocks than its extent needs: its last one begins inside.
                    behind = Poly({(self.block,): self.tile}) - cell
                    moves = self._of_poly(cell)
                    along = moves is not None and moves.blocks == self.tile
                    if not (along and holds(cell, context) and holds(behind, context)):
                        yield "that this index is inside", sub.index, access

    def _alike(self, expression: ir.Expression) -> bool:
        """Whether a number is the same in shard and whole whatever the data is, so that it fails in both or in none."""
        shift = self._of_poly(self.values.poly(expression)) if is_integer(expression.type) else None
        return shift is not None and shift.is_still

    # --- which axis of the grid walks the dimension ---------------------------------------------------------

    def _accesses(self, statement: ir.Statement) -> Iterator[tuple[ir.Access, bool]]:
        """Every access that a statement makes to a tensor, with whether it stores; views at their `let`."""
        for access in loads_of(self.program)[statement]:
            if isinstance(access.base, ir.Tensor):
                yield access, False
        match statement:
            case ir.DefineView(access=access) | ir.Store(access=access) if isinstance(access.base, ir.Tensor):
                yield access, isinstance(statement, ir.Store)

    def _walked(self, axes: dict[str, int]) -> int:
        first: tuple[ir.Access, bool] | None = None
        for stores in (True, False):
            for statement in self.statements:
                for access, is_store in self._accesses(statement):
                    if access.base.name not in axes or is_store != stores:
                        continue
                    first = first or (access, is_store)
                    start = self.values.poly(_start(access.subs[axes[access.base.name]]))
                    for axis in range(3):
                        tile = start.coefficient(("block", axis)).constant
                        if tile is not None and tile > 0:
                            self.block, self.tile = ("block", axis), tile
                            return axis
        if first is None:
            raise _Holds(f"nothing in the kernel lies along `{self.dim.name}`", self.dim.span)
        access, _ = first
        how = "is one place for all blocks"
        if _whole(access.subs[axes[access.base.name]]):
            how = "takes all of it at once"
        elif self._loop_in(access, axes):
            how = "walks it in a loop inside each block"
        raise _Holds(
            f"no axis of the grid walks `{self.dim.name}`: this access to `{access.base.name}` {how}", access.span,
            access.calls,
        )  # fmt: skip

    def _loop_in(self, access: ir.Access, axes: dict[str, int]) -> bool:
        return self.values.poly(_start(access.subs[axes[access.base.name]])).mentions("round")

    def _grid(self, axis: int) -> None:
        """The number of blocks along the axis follows from this extent and no other; that of the others does not."""
        for number, known in enumerate(grid_of(self.program).axes):
            if number == axis and not known.uses:
                raise _Holds(
                    f"the text does not say how many blocks axis {NAMES[axis]} has: {known.reason}", self.dim.span
                )
            for use in known.uses:
                mine = use.extent == Poly({(self.extent,): 1}) and use.divisor.constant == self.tile
                if number == axis and not mine:
                    raise _Holds(
                        f"axis {NAMES[axis]} of the grid has {describe(use)} blocks, not one for each {self.tile} "
                        f"cells of `{self.dim.name}`", use.span, use.calls,
                    )  # fmt: skip
                if number != axis and self.extent in use.extent.atoms | use.divisor.atoms:
                    raise _Holds(
                        f"axis {NAMES[number]} of the grid, too, is counted by `{self.dim.name}`", use.span, use.calls
                    )

    # --- shifts ---------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """The shift of every variable: of all that is ever assigned to it."""
        changed = True
        while changed:
            changed = False
            for statement in self.statements:
                for variable, state in self._defined(statement):
                    old = self.states.get(variable)
                    new = state if old is None else old if state is None or _same(old, state) else self._mixed(variable)
                    if new is not None and (old is None or not _same(old, new)):
                        self.states[variable] = new
                        changed = True

    def _mixed(self, variable: ir.Variable) -> _Loose:
        return _Loose(self._moves(), variable.span, variable.calls)

    def _moves(self) -> str:
        return f"depends on where along `{self.dim.name}` the block is"

    def _defined(self, statement: ir.Statement) -> Iterator[tuple[ir.Variable, _State]]:
        self.at = statement
        match statement:
            case ir.Define(variable=variable, value=initial):
                yield variable, STILL if initial is None else self.shift(initial)
            case ir.DefineView(variable=variable):
                yield variable, STILL
            case ir.Assign(variable=variable, op=None, value=new):
                yield variable, self.shift(new)
            case ir.Assign(variable=variable, op=op, value=new):
                yield variable, self._updated(variable, op in ("+", "-"), self.shift(new))
            case ir.Store(access=access, value=new) if isinstance(access.base, ir.Variable):
                yield access.base, self.shift(new)
            case ir.For(variable=variable, lo=lo):
                yield variable, self.shift(lo)

    def _updated(self, variable: ir.Variable, adds: bool, by: _State) -> _State:
        """What `x op= e` makes of `x`: what it was, where `e` is still and is added, or all is still."""
        before = self.states.get(variable)
        if not isinstance(by, _Shift):
            return by
        if by.is_still and (adds or before is None or self._is_still(before)):
            return before
        return self._mixed(variable)

    def _is_still(self, state: _State) -> bool:
        return isinstance(state, _Shift) and state.is_still

    def shift(self, expression: ir.Expression) -> _State:
        if is_bool(expression.type):
            return self._truth(expression)
        if is_integer(expression.type):
            known = self._of_poly(self.values.poly(expression))
            if known is not None:
                return known
        match expression:
            case ir.VariableRef(variable=variable):
                return self.states.get(variable)
            case ir.IntLiteral() | ir.FloatLiteral() | ir.BoolLiteral() | ir.ConstantRef() | ir.ParamRef():
                return STILL
            case ir.DimRef(dim=dim):
                return _Shift(0, 1) if dim.name == self.dim.name else STILL
            case ir.BlockIndex(axis=axis):
                return _Shift(1, 0) if self.block == ("block", axis) else STILL
            case ir.GridExtent(axis=axis):
                if self.block != ("block", axis):
                    return STILL
                return _Loose("is how many blocks the whole grid has", expression.span, expression.calls)
            case ir.ThreadValue() | ir.Error() | ir.Unsupported() | ir.TensorRef():
                return _Loose("is not known", expression.span, expression.calls)
            case ir.Load(access=access):
                # That the place is right is looked at where the load stands.
                return STILL if isinstance(access.base, ir.Tensor) else self.states.get(access.base)
            case ir.BinaryOp(op="+" | "-" as op, left=left, right=right) if is_integer(expression.type):
                a, b = self.shift(left), self.shift(right)
                if isinstance(a, _Shift) and isinstance(b, _Shift):
                    sign = 1 if op == "+" else -1
                    return _Shift(a.blocks + sign * b.blocks, a.ends + sign * b.ends)
            case ir.Convert(operand=operand) if is_integer(expression.type) and is_integer(operand.type):
                if expression.type == operand.type:
                    return self.shift(operand)
            case ir.BuiltinCall(name="gather", arguments=arguments) if isinstance(arguments[0], ir.TensorRef):
                return self.shift(arguments[1])
        return self._still_parts(expression)

    def _still_parts(self, expression: ir.Expression) -> _State:
        """A value made of parts that are alike in shard and whole is so itself."""
        states = [(part, self.shift(part)) for part in children_of(expression)]
        for _, state in states:
            if isinstance(state, _Loose):
                return state
        for part, state in states:
            if isinstance(state, _Shift) and not state.is_still:
                return _Loose(self._moves(), part.span, part.calls)
        return None if any(state is None for _, state in states) else STILL

    def _of_poly(self, poly: Poly) -> _Shift | None:
        """The shift of a polynomial; None where an atom is not known or is in it other than as a plain sum."""
        blocks = ends = 0
        for monomial, c in poly.terms.items():
            if self.block in monomial or self.extent in monomial:
                if len(monomial) != 1:
                    return None
                blocks, ends = (blocks + c, ends) if monomial[0] == self.block else (blocks, ends + c)
            elif not all(self._is_still_atom(atom) for atom in monomial):
                return None
        return _Shift(blocks, ends)

    def _is_still_atom(self, atom: Atom) -> bool:
        match atom[0]:
            case "dim" | "param" | "const" | "block" | "round":
                return True  # of another extent or axis; all rounds are those of the whole (see `_check`)
            case "blocks":
                return ("block", atom[1]) != self.block
            case "div" | "mod" | "min" | "max":
                parts = [self._of_poly(poly_of_key(key)) for key in atom[1:]]
                return all(part is not None and part.is_still for part in parts)
        return False

    # --- conditions: whether a cell near the block exists ---------------------------------------------------

    def _truth(self, expression: ir.Expression) -> _State:
        if isinstance(expression.type, ir.ScalarT):
            condition = self.values.conditions.get(expression)
            context = self.values.root if self.at is None else self.values.context(self.at)
            if condition is not None and self._asks(condition, expression, context):
                return STILL
        match expression:
            case ir.VariableRef(variable=variable):
                return self.states.get(variable)
            case ir.Load(access=access):
                return STILL if isinstance(access.base, ir.Tensor) else self.states.get(access.base)
        return self._still_parts(expression)

    def _asks(self, condition: Condition, whole: ir.Expression, context: Context) -> bool:
        match condition:
            case Truth():
                return True
            case Compare(op=op, poly=poly):
                return self._probe(poly, context) and (op == "ge" or self._probe(-poly, context))
            case All(parts=parts) | AnyOf(parts=parts):
                return all(self._asks(part, whole, context) for part in parts)
            case Opaque(expression=expression) if expression is not None and expression is not whole:
                return self._is_still(self._truth(expression))
        return False

    def _probe(self, poly: Poly, context: Context) -> bool:
        """Whether `poly >= 0` is alike in shard and whole, with enough of the neighbours' cells."""
        shift = self._of_poly(poly)
        if shift is None:
            return False
        if shift.is_still:
            return True
        rest = poly - Poly({(self.block,): shift.blocks}) - Poly({(self.extent,): shift.ends})
        if shift.ends == 0:
            if self.tile % shift.blocks:
                return False
            scale = abs(self.tile // shift.blocks)
            return self._reach_below((rest if shift.blocks > 0 else -rest - 1) * scale, context)
        if abs(shift.ends) == 1 and shift.blocks == -shift.ends * self.tile:
            return self._reach_above(-rest - 1 if shift.ends == 1 else rest, context)
        return False

    def _reach_below(self, place: Poly, context: Context) -> bool:
        """Note that a block looks at the cell `place` from its own first one."""
        least = self._slack(place, context)
        if least is None:
            return False
        self.below = max(self.below, least)
        return True

    def _reach_above(self, place: Poly, context: Context) -> bool:
        most = self._slack(self.tile - 1 - place, context)
        if most is None:
            return False
        self.above = max(self.above, most)
        return True

    def _slack(self, goal: Poly, context: Context) -> int | None:
        """The least number of at least 0 that, added to `goal`, is proved to make it never negative."""
        constant = goal.constant
        if constant is not None:
            return max(0, -constant) if -constant <= FARTHEST else None
        holds = self.values.holds
        if holds(goal, context):
            return 0
        if not holds(goal + FARTHEST, context):
            return None
        low, high = 0, FARTHEST  # proved for `high`, not for `low`
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(goal + middle, context) else (middle, high)
        return high

    # --- every statement ------------------------------------------------------------------------------------

    def _check(self, statement: ir.Statement, axes: dict[str, int]) -> None:
        for access, is_store in self._accesses(statement):
            self._place(access, is_store, axes)
        for root in evaluated_by(statement):
            for expression in walk(root):
                self._tables(expression, axes)
        match statement:
            case ir.Store(access=access, value=new):
                self._demand(new, "what is stored")
                if isinstance(access.base, ir.Variable):
                    self._subscripts(access)
            case ir.If(condition=condition) | ir.While(condition=condition):
                self._demand(condition, "this condition")
            case ir.For(lo=lo, hi=hi, step=step):
                trips = self.values.loop(statement).trips
                if trips is None or not self._is_still(self._of_poly(trips)):
                    self._demand(hi, "the end of this loop")
                    self._demand(lo, "the start of this loop")
                self._demand(step, "the step of this loop")

    def _tables(self, expression: ir.Expression, axes: dict[str, int]) -> None:
        match expression:
            case ir.TensorRef(tensor=tensor) if tensor.name in axes:
                raise _Holds(
                    f"`gather` may read `{tensor.name}` anywhere along `{self.dim.name}`", expression.span,
                    expression.calls,
                )  # fmt: skip
            case ir.Load(access=access) if isinstance(access.base, ir.Variable):
                self._subscripts(access)

    def _demand(self, expression: ir.Expression, what: str) -> None:
        state = self.shift(expression)
        if isinstance(state, _Loose):
            told = "" if state.span == expression.span else " by what"
            raise _Holds(f"{what} is not the same in every shard:{told} this {state.reason}", state.span, state.calls)
        if state is not None and not state.is_still:
            raise _Holds(f"{what} {self._moves()}", expression.span, expression.calls)

    def _subscripts(self, access: ir.Access) -> None:
        for part in _parts(access.subs):
            self._demand(part, f"the place in `{access.base.name}`")

    def _place(self, access: ir.Access, is_store: bool, axes: dict[str, int]) -> None:
        name, along = access.base.name, axes.get(access.base.name)
        for axis, sub in enumerate(access.subs):
            if axis != along:
                for part in _parts((sub,)):
                    self._demand(part, f"the place along axis {axis} of `{name}`, which is not cut,")
                continue
            self._along(access, sub, is_store)
        if along is None and is_store:
            raise _Holds(
                f"`{name}` is written and has no axis `{self.dim.name}`: each shard would write all of it", access.span,
                access.calls,
            )  # fmt: skip

    def _along(self, access: ir.Access, sub: ir.Sub, is_store: bool) -> None:
        name, dim = access.base.name, self.dim.name
        context = self.values.context(access)
        first = self.values.poly(_start(sub))
        length = Poly.of(1) if isinstance(sub, ir.PointSub) else self.values.poly(sub.length)

        def held(reason: str) -> _Holds:
            return _Holds(f"this access to `{name}` {reason}", access.span, access.calls)

        if _whole(sub):
            raise held(f"takes all of `{dim}` at once")
        shift = self.shift(_start(sub))
        if isinstance(shift, _Loose):
            raise _Holds(f"the place in `{name}` along `{dim}` {shift.reason}", shift.span, shift.calls)
        if shift is None or shift.ends or shift.blocks not in (0, self.tile):
            raise held(f"does not move along `{dim}` as its block does, by {self.tile} cells")
        if shift.blocks == 0:
            walks = self.values.poly(_start(sub)).mentions("round")
            raise held(f"walks `{dim}` in a loop inside each block" if walks else f"is at one place of `{dim}`")
        if isinstance(sub, ir.SliceSub):
            self._demand(sub.length, f"the length of what is taken of `{name}`")
        rest = first - Poly({(self.block,): self.tile})
        if is_store:
            if self._slack(rest, context) != 0 or self._slack(self.tile - rest - length, context) != 0:
                raise held(f"may write cells of `{dim}` outside the {self.tile} that are its block's own")
        elif not self._reach_below(rest, context) or not self._reach_above(rest + length - 1, context):
            raise held(f"reads cells of `{dim}` at a distance that is not known")


def _integers(type_: ir.Type) -> bool:
    """One integer, or many."""
    return isinstance(type_, ir.ScalarT | ir.TileT) and type_.dtype in INTEGERS


def _start(sub: ir.Sub) -> ir.Expression:
    return sub.index if isinstance(sub, ir.PointSub) else sub.first


def _whole(sub: ir.Sub) -> bool:
    return isinstance(sub, ir.SliceSub) and sub.whole


def _parts(subs: tuple[ir.Sub, ...]) -> Iterator[ir.Expression]:
    for sub in subs:
        if isinstance(sub, ir.PointSub):
            yield sub.index
        elif not sub.whole:
            yield sub.first
            yield sub.length


def _same(a: _State, b: _State) -> bool:
    if isinstance(a, _Shift) and isinstance(b, _Shift):
        return (a.blocks, a.ends) == (b.blocks, b.ends)
    return isinstance(a, _Loose) and isinstance(b, _Loose)


__all__ = ["Cut", "Tied", "cuts_of"]

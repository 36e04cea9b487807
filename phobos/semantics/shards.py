"""Along which dimensions a kernel can be cut into shards that know nothing of each other, and why not along others.

A shard is the kernel run on a slice of every tensor that has the dimension, as if the slice were all there is. That
gives the cells of the whole run where moving a block along the dimension moves all it touches with it and changes
nothing else. So each number is asked for its shift (`shifts`): what decides a branch, what is stored, what is an
index of another axis must have the shift 0; a place along the dimension must shift as its block does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from phobos.diagnostic import Span
from phobos.language.scalars import INTEGERS
from phobos.semantics import ir
from phobos.semantics.conflicts import conflicts_of
from phobos.semantics.fusion import FusedProgram
from phobos.semantics.grid import NAMES, describe, grid_of
from phobos.semantics.masks import points_of
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.shifts import Loose, Shifts
from phobos.semantics.values import Values, values_of
from phobos.semantics.walking import evaluated_by, is_integer, loads_of, statements_in, walk
from phobos.value import value


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


class _Cutter:
    def __init__(self, program: Program, dim: ir.Dim) -> None:
        self.program = program
        self.dim = dim
        self.values: Values = values_of(program)
        self.shifts: Shifts  # once it is known which axis walks the dimension
        self.statements = [s for s in statements_in(program) if s not in self.values.unreachable]

    def cut(self) -> Cut:
        axes = self._axes()
        self._nothing_global()
        axis, tile = self._walked(axes)
        self.shifts = Shifts(self.program, self.dim, ("block", axis), tile, self.statements)
        for statement in self.statements:
            self.shifts.at = statement
            self._check(statement, axes)
        self._grid(axis)
        if self.shifts.below or self.shifts.above:
            self._sound_beyond()
        for conflict in conflicts_of(self.program):
            if conflict.kind != "alias":
                name = conflict.first.access.base.name
                raise _Holds(
                    f"blocks are not proved to stay apart in `{name}`: {conflict.reason}",
                    conflict.second.access.span, conflict.second.access.calls,
                )  # fmt: skip
        unit = tile
        for promise in self.program.promises:
            if promise.dim == self.dim.name and promise.tile > 0:
                unit = math.lcm(unit, promise.tile)
        stored = {s.access.base.name for s in self.statements if isinstance(s, ir.Store)}
        if not stored & set(axes):
            raise _Holds(f"the kernel writes nothing along `{self.dim.name}`", self.dim.span)
        return Cut(
            self.dim.name, axis, tile, unit, self.shifts.below, self.shifts.above, axes,
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
                    behind = Poly({(self.shifts.block,): self.shifts.tile}) - cell
                    moves = self.shifts.of_poly(cell)
                    along = moves is not None and moves.blocks == self.shifts.tile
                    if not (along and holds(cell, context) and holds(behind, context)):
                        yield "that this index is inside", sub.index, access

    def _alike(self, expression: ir.Expression) -> bool:
        """Whether a number is the same in shard and whole whatever the data is, so that it fails in both or in none."""
        shift = self.shifts.of_poly(self.values.poly(expression)) if is_integer(expression.type) else None
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

    def _walked(self, axes: dict[str, int]) -> tuple[int, int]:
        """The axis of the grid, and the cells from one block to the next."""
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
                            return axis, tile
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
                mine = use.extent == Poly({(self.shifts.extent,): 1}) and use.divisor.constant == self.shifts.tile
                if number == axis and not mine:
                    raise _Holds(
                        f"axis {NAMES[axis]} of the grid has {describe(use)} blocks, not one for each "
                        f"{self.shifts.tile} cells of `{self.dim.name}`", use.span, use.calls,
                    )  # fmt: skip
                if number != axis and self.shifts.extent in use.extent.atoms | use.divisor.atoms:
                    raise _Holds(
                        f"axis {NAMES[number]} of the grid, too, is counted by `{self.dim.name}`", use.span, use.calls
                    )

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
                if trips is None or not self.shifts.is_still(self.shifts.of_poly(trips)):
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
        state = self.shifts.of(expression)
        if isinstance(state, Loose):
            told = "" if state.span == expression.span else " by what"
            raise _Holds(f"{what} is not the same in every shard:{told} this {state.reason}", state.span, state.calls)
        if state is not None and not state.is_still:
            raise _Holds(f"{what} {self.shifts.moves()}", expression.span, expression.calls)

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
        shift = self.shifts.of(_start(sub))
        if isinstance(shift, Loose):
            raise _Holds(f"the place in `{name}` along `{dim}` {shift.reason}", shift.span, shift.calls)
        if shift is None or shift.ends or shift.blocks not in (0, self.shifts.tile):
            raise held(f"does not move along `{dim}` as its block does, by {self.shifts.tile} cells")
        if shift.blocks == 0:
            walks = self.values.poly(_start(sub)).mentions("round")
            raise held(f"walks `{dim}` in a loop inside each block" if walks else f"is at one place of `{dim}`")
        if isinstance(sub, ir.SliceSub):
            self._demand(sub.length, f"the length of what is taken of `{name}`")
        tile, slack = self.shifts.tile, self.shifts.slack
        rest = first - Poly({(self.shifts.block,): tile})
        if is_store:
            if slack(rest, context) != 0 or slack(tile - rest - length, context) != 0:
                raise held(f"may write cells of `{dim}` outside the {tile} that are its block's own")
        elif not self.shifts.reach_below(rest, context) or not self.shifts.reach_above(rest + length - 1, context):
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


__all__ = ["Cut", "Tied", "cuts_of"]

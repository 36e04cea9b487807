"""The kernel in which tiles stay on chip: loaded in front of the stretch, worked on in variables, stored behind it.

The loop that walks over the tiles is written out round by round, so that each tile is a variable of its own; a round
that a block does not have is left out by the loop's own bound. Cells past the end of a tensor read as 0, so a tile
that hangs over the end is blanked there whenever it is written. `outlined` is the same kernel with the walks as loops,
however many rounds they have: what proofs are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from phobos.diagnostic import Span
from phobos.lowering.on_chip import ROUND, Kept, Walk, on_chip_of
from phobos.semantics import ir
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program
from phobos.semantics.walking import blocks_of, statements_of

INDEX, BOOL = ir.ScalarT("index"), ir.ScalarT("bool")
SHARED = (ir.Tensor, ir.Dim, ir.Constant, ir.ScalarParam, ir.ScalarT, ir.TileT, ir.ErrorT)

Rounds = tuple[tuple[Kept, int], ...]


def kept_on_chip(program: Program, keep: tuple[tuple[str, int], ...]) -> Program:
    """The kernel in which these tensors stay, which may, each for so many rounds."""
    possible = {kept.tensor.name: kept for kept in on_chip_of(program).kept}
    return written_out(program, tuple((possible[name], rounds) for name, rounds in keep))


def written_out(program: Program, rounds: Rounds) -> Program:
    """The kernel for launches in which no block walks more than so many rounds."""
    return _with_body(program, _Writer(program, dict(rounds), outline=False).block(program.body))


def outlined(program: Program, kept: Iterable[Kept]) -> Program:
    """Loads in front, stores behind, and nothing of the tensors between."""
    return _with_body(program, _Writer(program, dict.fromkeys(kept, 1), outline=True).block(program.body))


def _with_body(program: Program, body: ir.Block) -> Program:
    fields = {slot: getattr(program, slot) for slot in Program.__slots__ if not slot.startswith("_")}
    return Program(**{**fields, "body": body})


class _Writer:
    """Copies what is inside a stretch, every node anew, and leaves the rest as it is."""

    def __init__(self, program: Program, rounds: dict[Kept, int], outline: bool) -> None:
        self.program = program
        self.rounds = rounds
        self.outline = outline
        self.tiles = {kept: self._tiles(kept, 1 if outline else count) for kept, count in rounds.items()}
        self.taken = {access: kept for kept in rounds for access in kept.accesses}
        self.walks: dict[ir.Statement, list[Kept]] = {}
        for kept in rounds:
            for loop in kept.loops:
                self.walks.setdefault(loop, []).append(kept)
        self.active: list[Kept] = []  # whose stretches this is inside of
        self.names: dict[ir.Variable, ir.Variable] = {}  # of the round that is written
        self.views: dict[ir.Variable, Kept] = {
            s.variable: self.taken[s.access]
            for s in statements_of(program.body)
            if isinstance(s, ir.DefineView) and s.access in self.taken
        }
        self.round: dict[Kept, int] = {}  # that is written, of those that walk

    def _tiles(self, kept: Kept, count: int) -> tuple[ir.Variable, ...]:
        tensor = kept.tensor
        shape = tuple(length for _, length in kept.axes)
        return tuple(
            ir.Variable(tensor.name, "var", ir.TileT(tensor.dtype, shape), tensor.span, ()) for _ in range(count)
        )

    # --- statements -------------------------------------------------------------------------------

    def block(self, old: ir.Block) -> ir.Block:
        here = [kept for kept in self.rounds if kept.stretch.block is old]
        if not here and not self.active and not any(_holds(old, kept.stretch.block) for kept in self.rounds):
            return old
        out: list[ir.Statement] = []
        for at, statement in enumerate(old.statements):
            for kept in here:
                if kept.stretch.first == at:
                    out += self._load(kept)
                    self.active.append(kept)
            out += self._statement(statement)
            for kept in here:
                if kept.stretch.last == at:
                    self.active.remove(kept)
                    out += self._store(kept)
        return ir.Block(tuple(out))

    def _statement(self, old: ir.Statement) -> Iterable[ir.Statement]:
        walking = [kept for kept in self.walks.get(old, ()) if kept in self.active]
        if walking and not self.outline:
            assert isinstance(old, ir.For)
            return self._walked(old, walking)
        match old:
            case ir.Store(access=access, op=op, value=value) if self._kept(access) is not None:
                return self._assigned(self.taken[access], old, op, value)
            case ir.DefineView(access=access) if self._kept(access) is not None:
                return ()
        made = self.node(old)
        assert isinstance(made, ir.Statement)
        return (made,)

    def _kept(self, access: ir.Access) -> Kept | None:
        kept = self.taken.get(access)
        return kept if kept in self.active else None

    def _walked(self, old: ir.For, walking: list[Kept]) -> Iterable[ir.Statement]:
        walk = walking[0].walk
        assert walk is not None
        for at in range(self.rounds[walking[0]]):
            self.round.update(dict.fromkeys(walking, at))
            names = self.names
            self.names = dict(names)
            for variable in _defined_in(old):
                self.names[variable] = ir.Variable(
                    variable.name, variable.kind, variable.type, variable.span, variable.calls
                )
            here = self.names[old.variable] = ir.Variable(
                old.variable.name, "let", INDEX, old.variable.span, old.variable.calls
            )
            start = walk.lo + walk.step * at
            place = old.span, old.calls
            body = ir.Block((ir.Define(*place, here, self.spelled(start, *place)), *self.block(old.body).statements))
            yield ir.If(*place, old.keyword, self._below(start, walk.hi, *place), body, ir.Block(()))
            self.names = names

    def _assigned(self, kept: Kept, old: ir.Store, op: str | None, value: ir.Expression) -> Iterable[ir.Statement]:
        place = old.span, old.calls
        tile = self._tile(kept)
        made = self.node(value)
        assert isinstance(made, ir.Expression)
        yield ir.Assign(*place, tile, op, made)
        if not self.outline:
            yield from self._blanked(kept, tile, *place)

    def _blanked(self, kept: Kept, tile: ir.Variable, span: Span, calls: tuple[Span, ...]) -> Iterable[ir.Statement]:
        """Where the tile hangs over the end of the tensor, the cells outside become 0."""
        for axis in kept.ragged:
            first, length = self._first(kept, axis), kept.axes[axis][1]
            extent = self._extent(kept.tensor, axis, span, calls)
            zero = ir.Convert(span, calls, ir.ScalarT(kept.tensor.dtype), ir.IntLiteral(span, calls, INDEX, 0), True)
            if length == 1:
                over = ir.BinaryOp(span, calls, BOOL, ">=", self.spelled(first, span, calls), extent)
                blank: ir.Expression = zero
            else:
                end = self.spelled(first + length, span, calls)
                over = ir.BinaryOp(span, calls, BOOL, ">", end, extent)
                assert isinstance(tile.type, ir.TileT)
                shape = (1,) * (len(kept.axes) - 1) + (length,)
                count = ir.BuiltinCall(
                    span, calls, ir.TileT("index", shape), "iota", (ir.IntLiteral(span, calls, INDEX, length),)
                )
                left = ir.BinaryOp(span, calls, INDEX, "-", extent, self.spelled(first, span, calls))
                inside = ir.BinaryOp(span, calls, ir.TileT("bool", shape), "<", count, left)
                blank = ir.BuiltinCall(
                    span, calls, tile.type, "where", (inside, ir.VariableRef(span, calls, tile.type, tile), zero)
                )
            body = ir.Block((ir.Assign(span, calls, tile, None, blank),))
            yield ir.If(span, calls, span, over, body, ir.Block(()))

    # --- in front and behind ----------------------------------------------------------------------

    def _load(self, kept: Kept) -> Iterable[ir.Statement]:
        place = kept.tensor.span, ()
        for at, tile in enumerate(self.tiles[kept]):

            def load(access: ir.Access, tile: ir.Variable = tile) -> ir.Statement:
                return ir.Assign(*place, tile, None, ir.Load(*place, tile.type, access))

            yield ir.Define(*place, tile, None)
            yield self._in_round(kept, at, load)

    def _store(self, kept: Kept) -> Iterable[ir.Statement]:
        place = kept.tensor.span, ()
        for at, tile in enumerate(self.tiles[kept] if kept.stored else ()):

            def store(access: ir.Access, tile: ir.Variable = tile) -> ir.Statement:
                return ir.Store(*place, access, None, ir.VariableRef(*place, tile.type, tile))

            yield self._in_round(kept, at, store)

    def _in_round(self, kept: Kept, at: int, made: Callable[[ir.Access], ir.Statement]) -> ir.Statement:
        """What is made of the tile of a round, where a block has that round; outlined, of every round."""
        walk, span = kept.walk, kept.tensor.span
        if walk is None:
            return made(self._access(kept, [self.spelled(first, span, ()) for first, _ in kept.axes]))
        if not self.outline:
            begins = [self.spelled(self._first(kept, axis, at), span, ()) for axis in range(len(kept.axes))]
            body = ir.Block((made(self._access(kept, begins)),))
            return ir.If(span, (), span, self._below(walk.lo + walk.step * at, walk.hi, span, ()), body, ir.Block(()))
        counter = ir.Variable("", "loop", INDEX, span, ())
        begins = [self._counted(first, walk, counter, span) for first, _ in kept.axes]
        lo, hi, step = (self.spelled(poly, span, ()) for poly in (walk.lo, walk.hi, walk.step))
        return ir.For(span, (), span, counter, lo, hi, step, None, ir.Block((made(self._access(kept, begins)),)))

    def _access(self, kept: Kept, begins: list[ir.Expression]) -> ir.Access:
        span = kept.tensor.span
        subs = tuple(
            ir.SliceSub(begin, ir.IntLiteral(span, (), INDEX, length), length, False)
            for begin, (_, length) in zip(begins, kept.axes, strict=True)
        )
        return ir.Access(span, (), kept.tensor, subs)

    def _counted(self, first: Poly, walk: Walk, counter: ir.Variable, span: Span) -> ir.Expression:
        """`first` where the counter of the walk is at its round: it goes from `lo` in steps."""
        slope, rest = first.coefficient(ROUND), first.without(ROUND)
        now: ir.Expression = ir.VariableRef(span, (), INDEX, counter)
        if not slope.terms:
            return self.spelled(first, span, ())
        if slope == walk.step:
            return ir.BinaryOp(span, (), INDEX, "+", now, self.spelled(rest - walk.lo, span, ()))
        gone = ir.BinaryOp(span, (), INDEX, "-", now, self.spelled(walk.lo, span, ()))
        turn = ir.BinaryOp(span, (), INDEX, "/", gone, self.spelled(walk.step, span, ()))
        moved = ir.BinaryOp(span, (), INDEX, "*", turn, self.spelled(slope, span, ()))
        return ir.BinaryOp(span, (), INDEX, "+", moved, self.spelled(rest, span, ()))

    def _first(self, kept: Kept, axis: int, at: int | None = None) -> Poly:
        number = self.round.get(kept, 0) if at is None else at
        return kept.axes[axis][0].substitute(lambda atom: Poly.of(number) if atom == ROUND else None)

    def _tile(self, kept: Kept) -> ir.Variable:
        return self.tiles[kept][0 if self.outline else self.round.get(kept, 0)]

    # --- expressions ------------------------------------------------------------------------------

    def node(self, old: object) -> object:
        """The copy of a node, of a tuple of them; what is no node of the program's body is itself."""
        if isinstance(old, tuple):
            return tuple([self.node(one) for one in old])
        if isinstance(old, ir.Block):
            return self.block(old)
        if isinstance(old, SHARED) or type(old).__module__ != ir.__name__:
            return old
        if isinstance(old, ir.Variable):
            return self.names.get(old, old)
        match old:
            case ir.Load(span=span, calls=calls, type=kind, access=access) if self._kept(access) is not None:
                return ir.VariableRef(span, calls, kind, self._tile(self.taken[access]))
            case ir.VariableRef(span=span, calls=calls, type=kind, variable=variable) if (
                self.views.get(variable) in self.active
            ):
                return ir.VariableRef(span, calls, kind, self._tile(self.views[variable]))
        fields = {name: self.node(getattr(old, name)) for name in type(old)._value_types}  # type: ignore[attr-defined]
        return type(old)(**fields)

    def _below(self, start: Poly, end: Poly, span: Span, calls: tuple[Span, ...]) -> ir.Expression:
        return ir.BinaryOp(span, calls, BOOL, "<", self.spelled(start, span, calls), self.spelled(end, span, calls))

    def _extent(self, tensor: ir.Tensor, axis: int, span: Span, calls: tuple[Span, ...]) -> ir.Expression:
        extent = tensor.extents[axis]
        if isinstance(extent, ir.Dim):
            return ir.DimRef(span, calls, INDEX, extent)
        return ir.IntLiteral(span, calls, INDEX, extent if isinstance(extent, int) else extent.value)

    def spelled(self, poly: Poly, span: Span, calls: tuple[Span, ...]) -> ir.Expression:
        """A polynomial of the block, the grid, extents and parameters as an expression."""
        total: ir.Expression | None = None
        for monomial, c in poly.key:
            term: ir.Expression | None = None if c == 1 and monomial else ir.IntLiteral(span, calls, INDEX, c)
            for atom in monomial:
                factor = self._atom(atom, span, calls)
                term = factor if term is None else ir.BinaryOp(span, calls, INDEX, "*", term, factor)
            assert term is not None
            total = term if total is None else ir.BinaryOp(span, calls, INDEX, "+", total, term)
        return ir.IntLiteral(span, calls, INDEX, 0) if total is None else total

    def _atom(self, atom: Atom, span: Span, calls: tuple[Span, ...]) -> ir.Expression:
        match atom:
            case ("dim", str(name)):
                return ir.DimRef(span, calls, INDEX, self.program.dims[name])
            case ("param", str(name)):
                return ir.ParamRef(span, calls, INDEX, self.program.params[name])
            case ("block", int(axis)):
                return ir.BlockIndex(span, calls, INDEX, axis)
            case ("blocks", int(axis)):
                return ir.GridExtent(span, calls, INDEX, axis)
        raise AssertionError(f"no expression for {atom}")


def _holds(block: ir.Block, wanted: ir.Block) -> bool:
    return any(inner is wanted for statement in statements_of(block) for inner in blocks_of(statement))


def _defined_in(loop: ir.For) -> Iterable[ir.Variable]:
    """The variables that come into being in a round."""
    for statement in statements_of(loop.body):
        match statement:
            case ir.Define(variable=variable) | ir.DefineView(variable=variable) | ir.For(variable=variable):
                yield variable
            case ir.Inline(result=ir.Variable() as variable) | ir.Atomic(result=ir.Variable() as variable):
                yield variable

"""Which cells may stay on chip from one barrier to the next: per tensor a proof, or the reason against it.

A tensor stays where, over a stretch of the kernel with barriers in it, every access takes one and the same tile of a
round, and no other block touches any of those tiles before the stretch is over. Its tiles are then loaded once into
registers, worked on there, and stored once at the end. How many tiles a block has (the rounds of the loop that walks
over them) is known only at a launch, where `rounds_at` asks; `on_chip_form` writes the kernel for that many.

The proof is made on the kernel as it would become: with the loads at the front, the stores at the end, and nothing
between, no two blocks may meet in a cell. So whatever else touches the tensor, before, behind or inside, is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from phobos.diagnostic import Span
from phobos.language.scalars import scalar
from phobos.semantics import ir
from phobos.semantics.conflicts import conflicts_of
from phobos.semantics.flow import Flow, flow_of
from phobos.semantics.footprints import Footprint, footprints_of
from phobos.semantics.grid import evaluate
from phobos.semantics.masks import masks_of
from phobos.semantics.obligations import obligations_of
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.values import LoopFact, Values, values_of
from phobos.semantics.walking import blocks_of, statements_of
from phobos.value import value

ROUND: Atom = ("round", "of its walk")
MOST_ROUNDS = 16  # the walk is written out, so its code grows with them
MOST_REGISTERS = 64  # of a thread, for all that stays

Refused = str


@value
class Stretch:
    """Statements `first` to `last` of `block`, in which `barriers` stand."""

    block: ir.Block
    first: int
    last: int
    barriers: tuple[ir.Barrier, ...]

    @property
    def statements(self) -> tuple[ir.Statement, ...]:
        return self.block.statements[self.first : self.last + 1]


@value
class Walk:
    """`lo`, `lo + step`, ... below `hi`: of the block, the grid, extents and parameters alone."""

    lo: Poly
    hi: Poly
    step: Poly


@value
class Kept:
    """A tensor that may stay on chip over `stretch`.

    `axes` - first cell and length on each axis of the tile in round `ROUND` of `walk` (None: there is one tile).
    `accesses` - all accesses of the stretch, `loops` those that walk. `stored` - it is stored, and so at the end.
    `ragged` - the axes along which a tile may run past the tensor; cells there must read as 0 again.
    """

    tensor: ir.Tensor
    stretch: Stretch
    axes: tuple[tuple[Poly, int], ...]
    walk: Walk | None
    loops: tuple[ir.For, ...]
    accesses: frozenset[ir.Access]
    stored: bool
    ragged: tuple[int, ...]
    threads: int

    @property
    def registers(self) -> int:
        """Of a thread, for each round."""
        cells = 1
        for _, length in self.axes:
            cells *= length
        return -(-cells // self.threads) * max(1, scalar(self.tensor.dtype).bytes // 4)

    @property
    def proof(self) -> str:
        last = "stored once behind" if self.stored else "never stored"
        return (
            f"no other block touches a block's tiles of `{self.tensor.name}` around {_count(self.stretch)}, "
            f"so they are loaded once in front and {last}"
        )


@value
class Refusal:
    """Why the tiles of a tensor go through memory at every barrier; `span` is where that shows."""

    tensor: ir.Tensor
    span: Span
    calls: tuple[Span, ...]
    why: Refused


@value
class OnChip:
    """What may stay, and why the rest may not: of each tensor that is touched on both sides of a barrier."""

    kept: tuple[Kept, ...]
    refused: tuple[Refusal, ...]


@fact
def on_chip_of(program: Program) -> OnChip:
    """What may stay on chip across the barriers of a kernel without problems."""
    if not any(isinstance(s, ir.Barrier) for s in statements_of(program.body)):
        return OnChip((), ())
    finder = _Finder(program)
    waiting = {tensor: finder.tries(tensor) for tensor in program.tensors.values()}
    kept: dict[ir.Tensor, Kept] = {}
    refused: dict[ir.Tensor, Refusal] = {}
    while waiting:
        hoped: list[Kept] = []
        for tensor, tries in list(waiting.items()):
            found = next(tries, None)
            while isinstance(found, Refusal):
                refused[tensor] = found
                found = next(tries, None)
            if found is None:
                del waiting[tensor]
            else:
                hoped.append(found)
        against = _not_private(program, hoped)
        for one in hoped:
            if one.tensor in against:
                refused[one.tensor] = against[one.tensor]
            else:
                kept[one.tensor] = one
                del waiting[one.tensor]
    order = list(program.tensors.values())
    return OnChip(
        tuple(kept[tensor] for tensor in order if tensor in kept),
        tuple(refused[tensor] for tensor in order if tensor in refused and tensor not in kept),
    )


def rounds_at(kept: Kept, sizes: Mapping[str, int], blocks: int) -> int | None:
    """The most rounds that a block of the launch walks; `sizes` holds extents and integer parameters.

    None where it cannot be told. The bounds are linear in the block, so the first or the last one walks furthest.
    """
    if kept.walk is None:
        return 1
    most = 0
    for block in {0, blocks - 1}:
        lo, hi, step = (_at(poly, sizes, block, blocks) for poly in (kept.walk.lo, kept.walk.hi, kept.walk.step))
        if lo is None or hi is None or step is None or step < 1:
            return None
        most = max(most, -(-(hi - lo) // step))
    return most


def _at(poly: Poly, sizes: Mapping[str, int], block: int, blocks: int) -> int | None:
    numbers: dict[Atom, int] = {("block", 0): block, ("blocks", 0): blocks}

    def put(atom: Atom) -> Poly | None:
        return Poly.of(numbers[atom]) if atom in numbers else None

    return evaluate(poly.substitute(put), sizes)


# --- the search -------------------------------------------------------------------------------------------


class _Finder:
    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def values(self) -> Values:
        return values_of(self.program)

    @cached_property
    def flow(self) -> Flow:
        return flow_of(self.program)

    @cached_property
    def footprints(self) -> dict[ir.Tensor, list[Footprint]]:
        found: dict[ir.Tensor, list[Footprint]] = {}
        for one in footprints_of(self.program):
            if isinstance(one.access.base, ir.Tensor):
                found.setdefault(one.access.base, []).append(one)
        return found

    @cached_property
    def doubtful(self) -> dict[ir.Statement, str]:
        """The barriers that perhaps not all blocks reach alike."""
        found: dict[ir.Statement, str] = {}
        for one in obligations_of(self.program):
            if one.kind == "same-barriers" and one.state != "proved" and isinstance(one.subject, ir.Barrier):
                found[one.subject] = one.reason
        return found

    def tries(self, tensor: ir.Tensor) -> Iterator[Kept | Refusal]:
        """For each stretch what would stay, if it is private; nothing where no barrier lies between two accesses."""
        touched = self.footprints.get(tensor, [])
        for stretch in self._stretches({one.statement for one in touched}):
            yield self._over(tensor, stretch, touched)

    def _stretches(self, touching: set[ir.Statement]) -> Iterator[Stretch]:
        """Longest first: in each block from the first statement that touches it to the last, then each loop alone."""
        seen: set[tuple[int, int, int]] = set()
        for block in _blocks(self.program.body):
            inside = [at for at, one in enumerate(block.statements) if any(s in touching for s in _all_of(one))]
            spans = [(inside[0], inside[-1])] if inside else []
            spans += [(at, at) for at in inside if isinstance(block.statements[at], (ir.For, ir.While))]
            for first, last in spans:
                if (id(block), first, last) in seen:
                    continue
                seen.add((id(block), first, last))
                statements = block.statements[first : last + 1]
                barriers = tuple(s for one in statements for s in _all_of(one) if isinstance(s, ir.Barrier))
                if barriers and (len(inside) > 1 or isinstance(statements[0], (ir.For, ir.While, ir.Inline))):
                    yield Stretch(block, first, last, barriers)

    def _over(self, tensor: ir.Tensor, stretch: Stretch, touched: list[Footprint]) -> Kept | Refusal:
        """Whether it may stay over one stretch."""
        within = {s for one in stretch.statements for s in _all_of(one)}
        mine = [one for one in touched if one.statement in within]
        first = mine[0]

        def no(why: Refused, at: Footprint | ir.Statement = first) -> Refusal:
            place = at.access if isinstance(at, Footprint) else at
            return Refusal(tensor, place.span, place.calls, why)

        for barrier in stretch.barriers:
            if barrier in self.doubtful:
                return no(self.doubtful[barrier], barrier)
        for statement in within:
            why = self._leaves(statement, within)
            if why:
                return no(why, statement)
        axes: tuple[tuple[Poly, int], ...] | None = None
        walk_: Walk | None = None
        loops: dict[ir.For, None] = {}
        for one in mine:
            found = self._tile(one, within)
            if isinstance(found, str):
                return no(found, one)
            tile, loop = found
            how = None if loop is None else self._walk(loop)
            if isinstance(how, str):
                return no(how, one)
            if loop is not None:
                loops[loop] = None
            if axes is None:
                axes, walk_ = tile, how
            elif not _same(axes, tile) or not _alike(walk_, how):
                return no("not every access takes the same tile of a round", one)
        assert axes is not None
        stored = any(one.kind == "store" for one in mine)
        if stored and walk_ is not None and not self._apart(axes):
            return no("two rounds of one block may take the same cell")
        ragged = self._ragged(mine, axes)
        if isinstance(ragged, str):
            return no(ragged)
        return Kept(
            tensor, stretch, axes, walk_, tuple(loops), frozenset(one.evaluated for one in mine), stored, ragged,
            self.program.launch.threads,
        )  # fmt: skip

    def _leaves(self, statement: ir.Statement, within: set[ir.Statement]) -> Refused:
        """How a statement goes past the end of the stretch, where the tiles are stored."""
        match statement:
            case ir.Leave(leaves_kernel=True):
                return "a `return` goes past the place where the tiles would be stored"
            case ir.Leave() | ir.Break() | ir.Continue():
                owner = self.flow.parents[statement][2]
                wanted = (ir.Inline,) if isinstance(statement, ir.Leave) else (ir.For, ir.While)
                while owner is not None and not isinstance(owner, wanted):
                    owner = self.flow.parents[owner][2]
                if owner not in within:
                    return "control leaves past the place where the tiles would be stored"
        return ""

    def _tile(
        self, one: Footprint, within: set[ir.Statement]
    ) -> tuple[tuple[tuple[Poly, int], ...], ir.For | None] | Refused:
        """The tile that an access takes, and the loop that walks over such tiles."""
        if one.kind == "atomic":
            return "atomics are for other blocks to see"
        if one.evaluated.is_point:
            return "a single cell is taken, not a tile"
        lengths = [sub.static if isinstance(sub, ir.SliceSub) else None for sub in one.evaluated.subs]
        firsts: list[Poly] = []
        walks: dict[ir.Statement, LoopFact] = {}
        for axis in one.axes:
            if axis is None:
                return "where it begins has no closed form"
            firsts.append(axis[0])
            for atom in axis[0].atoms:
                loop = self.values.loop_of(atom)
                if loop is not None and loop.statement in within:
                    walks[loop.statement] = loop
                elif atom not in (("block", 0), ("blocks", 0)) and atom[0] not in ("dim", "param"):
                    return "where it begins hangs on more than the block, the launch and one loop"
        if any(length is None for length in lengths):
            return "how long it is is not known when compiled"
        if any(self.flow.holds_barrier(loop) for loop in walks):
            return "its tile is another one behind the barrier"
        if len(walks) > 1:
            return "two loops walk over its tiles"
        tile = tuple(
            (_round_named(f, walks.values()), n) for f, n in zip(firsts, lengths, strict=True) if n is not None
        )
        if not walks:
            return tile, None
        ((statement, fact_),) = walks.items()
        if isinstance(statement, ir.While):
            return "a `while` walks over its tiles"
        assert isinstance(statement, ir.For)
        if not all(first.is_linear_in(fact_.variable) for first in firsts):
            return "its tiles are not evenly spaced"
        return tile, statement

    def _walk(self, loop: ir.For) -> Walk | Refused:
        fact_ = self.values.loops[loop]
        if fact_.lo is None or fact_.hi is None or fact_.step is None:
            return "the bounds of the loop that walks over its tiles have no closed form"
        bounds = (fact_.lo, fact_.hi, fact_.step)
        for poly in bounds:
            for atom in poly.atoms:
                if atom not in (("block", 0), ("blocks", 0)) and atom[0] not in ("dim", "param"):
                    return "the bounds of the loop that walks over its tiles hang on more than the block and the launch"
        block: Atom = ("block", 0)
        if block in fact_.step.atoms or not (fact_.lo.is_linear_in(block) and fact_.hi.is_linear_in(block)):
            return "the bounds of the loop that walks over its tiles are not linear in the block"
        for statement in statements_of(loop.body):
            if isinstance(statement, (ir.Break, ir.Continue)) and self._target(statement) is loop:
                return "the loop that walks over its tiles is left in the middle of a round"
        return Walk(*bounds)

    def _target(self, statement: ir.Statement) -> ir.Statement | None:
        owner = self.flow.parents[statement][2]
        while owner is not None and not isinstance(owner, (ir.For, ir.While)):
            owner = self.flow.parents[owner][2]
        return owner

    def _apart(self, axes: tuple[tuple[Poly, int], ...]) -> bool:
        """Whether no two rounds of a block share a cell."""
        return any(
            self.values.knowledge.never_negative(first.coefficient(ROUND) - length, ()) for first, length in axes
        )

    def _ragged(self, mine: list[Footprint], axes: tuple[tuple[Poly, int], ...]) -> tuple[int, ...] | Refused:
        masks = masks_of(self.program)
        found: list[int] = []
        for axis, (first, length) in enumerate(axes):
            needed = [masks[one.evaluated][axis] for one in mine]
            if not any(mask is None or mask.needed for mask in needed):
                continue
            start = first.substitute(lambda atom: Poly.atom("round", "any") if atom == ROUND else None)
            if not self._never_below(start):
                return "where it begins is not proved to be inside the tensor"
            if axis + 1 < len(axes) and length > 1:
                return "its rows may run past the end of the tensor"
            found.append(axis)
        return tuple(found)

    def _never_below(self, poly: Poly) -> bool:
        """Never negative, whatever the block and the round."""
        return all(
            c >= 0 and all(atom[0] in ("block", "blocks", "dim", "round") for atom in monomial)
            for monomial, c in poly.terms.items()
        )


def _not_private(program: Program, hoped: list[Kept]) -> dict[ir.Tensor, Refusal]:
    """The proof: with loads in front, stores behind and nothing between, nobody meets; else where somebody does."""
    from phobos.lowering.on_chip_form import outlined

    found: dict[ir.Tensor, Refusal] = {}
    if not hoped:
        return found
    mine = {kept.tensor: kept for kept in hoped}
    for conflict in conflicts_of(outlined(program, hoped)):
        kept = mine.get(conflict.first.access.base)  # type: ignore[arg-type]
        if kept is None or conflict.kind == "alias" or kept.tensor in found:
            continue
        other = conflict.second if conflict.first.access.span == kept.tensor.span else conflict.first
        why = "another block touches one of its tiles meanwhile"
        if conflict.kind == "unknown":
            why = f"that no other block touches its tiles meanwhile is not proved: {conflict.reason}"
        found[kept.tensor] = Refusal(kept.tensor, other.access.span, other.access.calls, why)
    return found


# --- small questions --------------------------------------------------------------------------------------


def _blocks(block: ir.Block) -> Iterator[ir.Block]:
    """A block and all inside it, the outer ones first."""
    yield block
    for statement in block.statements:
        for inner in blocks_of(statement):
            yield from _blocks(inner)


def _all_of(statement: ir.Statement) -> Iterator[ir.Statement]:
    yield statement
    for block in blocks_of(statement):
        yield from statements_of(block)


def _round_named(first: Poly, loops: object) -> Poly:
    atoms = {loop.variable for loop in loops}  # type: ignore[attr-defined]
    return first.substitute(lambda atom: Poly.atom(*ROUND) if atom in atoms else None)


def _same(a: tuple[tuple[Poly, int], ...], b: tuple[tuple[Poly, int], ...]) -> bool:
    return all(f == g and n == m for (f, n), (g, m) in zip(a, b, strict=True))


def _alike(a: Walk | None, b: Walk | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.lo == b.lo and a.hi == b.hi and a.step == b.step


def _count(stretch: Stretch) -> str:
    return "the barrier" if len(stretch.barriers) == 1 else f"the {len(stretch.barriers)} barriers"


__all__ = ["Kept", "OnChip", "Refusal", "on_chip_of", "rounds_at"]

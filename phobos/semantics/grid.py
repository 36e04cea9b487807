"""The grid of a kernel: what its text says of it, what it cannot say, and what it may not exceed.

The plan, the reference runtime, hover and the rules all ask here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.conditions import Condition, Truth, polys
from phobos.semantics.grid_constants import GridConstant, grid_constants_of, stride_of
from phobos.semantics.knowledge import poly_of_key
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.values import (
    Context,
    Values,
    children_of,
    expressions_in,
    statements_in,
    symbolic_values_of,
    values_of,
    walk,
)
from phobos.semantics.walking import all_evaluated, loads_of
from phobos.value import value


@value
class GridUse:
    """One use of a block index that says how many blocks an axis has: `ceil(extent / divisor)`."""

    extent: Poly
    divisor: Poly
    span: Span
    calls: tuple[Span, ...]


@value
class Axis:
    """One axis of an ordinary grid.

    `read`: the kernel reads this index. `uses`: what says its size (they must agree as numbers at launch);
    empty with `read` means the caller must say, and `reason` says why (PH409).
    """

    read: bool
    uses: tuple[GridUse, ...]
    reason: str


@value
class CellCap:
    """A stored place, or loaded point, on one dimension given by the bare block index: grid <= extent."""

    extent: Poly
    tensor: ir.Tensor
    axis_of_tensor: int
    axis: int
    span: Span
    calls: tuple[Span, ...]


@value
class Grid:
    """`axes` has three entries. `persistent`: one-dimensional, sized by residency.

    `rounds` are the block-strided loops `ceil(hi / F)` whose maximum is the useful work of a persistent grid;
    `useful_known` is False where a use of the block index neither starts such a loop nor is a slot.
    """

    persistent: bool
    axes: tuple[Axis, Axis, Axis]
    constants: tuple[GridConstant, ...]
    rounds: tuple[GridUse, ...]
    useful_known: bool
    caps: tuple[CellCap, ...]


class GridUnknown(Exception):
    """The text does not say the grid; the message says why, in the user's terms (PH409)."""


class GridDisagrees(Exception):
    """Two uses give different counts at these sizes."""


NAMES = ("x", "y", "z")
CHANGING = ("block", "round", "var", "load", "unsigned", "atomic", "expr", "thread")


@fact
def grid_of(program: Program) -> Grid:
    """Everything the text says about the grid."""
    values = values_of(program)
    constants = grid_constants_of(program)
    reads = _axes_read(program)
    axes = tuple(_axis(program, values, axis, axis in reads) for axis in range(3))
    rounds, known = _useful(program, values) if program.is_persistent else ((), False)
    return Grid(
        program.is_persistent,
        (axes[0], axes[1], axes[2]),
        constants,
        rounds,
        known and not constants,
        _caps(program, values),
    )


@fact
def has_one_axis(program: Program) -> bool:
    """Whether every launch has axis x alone: a persistent grid has, and so has one that meets at a barrier."""
    return program.is_persistent or any(isinstance(s, ir.Barrier) for s in statements_in(program))


def blocks_at(program: Program, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    """The inferred grid of an ordinary kernel at these extents and parameters. Raises GridUnknown, GridDisagrees."""
    counts: list[int] = []
    for axis, name in zip(grid_of(program).axes, NAMES):
        if not axis.read:
            counts.append(1)
            continue
        if not axis.uses:
            raise GridUnknown(axis.reason)
        found: list[tuple[int, GridUse]] = []
        for use in axis.uses:
            count = count_at(use, sizes)
            if count is not None:
                found.append((count, use))
        if not found:
            raise GridUnknown(f"the extent that gives axis {name} of the grid is not known")
        if any(count != found[0][0] for count, _ in found):
            listed = ", ".join(sorted({f"{describe(use)} = {count}" for count, use in found}))
            raise GridDisagrees(f"the uses of `ctx.block.{name}` disagree on the number of blocks: {listed}")
        counts.append(found[0][0])
    return counts[0], counts[1], counts[2]


def useful_work_at(program: Program, sizes: Mapping[str, int]) -> int | None:
    """The most blocks of a persistent grid that have work, or None where it is not known."""
    grid = grid_of(program)
    if not grid.persistent or not grid.useful_known or not grid.rounds:
        return None
    counts = [count_at(use, sizes) for use in grid.rounds]
    known = [count for count in counts if count is not None]
    return max(1, *known) if len(known) == len(counts) else None


def cap_at(program: Program, sizes: Mapping[str, int]) -> tuple[int, CellCap] | None:
    """The smallest number of cells that the blocks of axis x own one each of, or None."""
    found: tuple[int, CellCap] | None = None
    for cap in grid_of(program).caps:
        count = evaluate(cap.extent, sizes)
        if cap.axis == 0 and count is not None and (found is None or count < found[0]):
            found = count, cap
    return found


def persistent_blocks_at(program: Program, sizes: Mapping[str, int], resident: int) -> int:
    """How many blocks of a persistent kernel are launched where the caller does not say: a constant that is the grid by
    its own value, else as many as are resident, have work and have a cell each."""
    constant = next(iter(grid_of(program).constants), None)
    if constant is not None and not constant.stride_form:
        return constant.constant.value
    useful, cap = useful_work_at(program, sizes), cap_at(program, sizes)
    return max(1, min(n for n in (resident, useful, None if cap is None else cap[0]) if n is not None))


def count_at(use: GridUse, sizes: Mapping[str, int]) -> int | None:
    """`ceil(extent / divisor)` of a use at these sizes."""
    extent, divisor = evaluate(use.extent, sizes), evaluate(use.divisor, sizes)
    if extent is None or divisor is None or divisor <= 0:
        return None
    return max(0, -(-extent // divisor))


def evaluate(poly: Poly, sizes: Mapping[str, int]) -> int | None:
    """The number a polynomial of extents, parameters and constants is at these sizes; None where an atom is missing."""
    total = 0
    for monomial, c in poly.terms.items():
        for atom in monomial:
            known = _atom_at(atom, sizes)
            if known is None:
                return None
            c *= known
        total += c
    return total


def _atom_at(atom: Atom, sizes: Mapping[str, int]) -> int | None:
    match atom[0]:
        case "dim" | "param" | "const":
            return sizes.get(str(atom[1]))
        case "div":
            a, b = evaluate(poly_of_key(atom[1]), sizes), evaluate(poly_of_key(atom[2]), sizes)
            if a is None or not b:
                return None
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case "min" | "max":
            a, b = evaluate(poly_of_key(atom[1]), sizes), evaluate(poly_of_key(atom[2]), sizes)
            if a is None or b is None:
                return None
            return min(a, b) if atom[0] == "min" else max(a, b)
    return None


def describe(use: GridUse) -> str:
    """`ceil(N / 64)`, for messages."""
    if use.divisor.constant == 1:
        return show(use.extent)
    sides = (f"({show(side)})" if len(side.terms) > 1 else show(side) for side in (use.extent, use.divisor))
    return f"ceil({' / '.join(sides)})"


def show(poly: Poly) -> str:
    """A polynomial of extents, parameters and block values in the language's own spelling."""
    parts: list[str] = []
    for monomial, c in sorted(poly.terms.items(), key=lambda term: (term[1] < 0, -len(term[0]), repr(term[0]))):
        names = [_shown(atom) for atom in monomial]
        if not names or abs(c) != 1:
            names.append(str(abs(c)))
        sign = "-" if c < 0 else "+"
        text = " * ".join(names)
        parts.append(f"{sign} {text}" if parts else f"-{text}" if c < 0 else text)
    return " ".join(parts) or "0"


def _shown(atom: Atom) -> str:
    match atom[0]:
        case "dim" | "param" | "const":
            return str(atom[1])
        case "block":
            return f"ctx.block.{NAMES[int(str(atom[1]))]}"
        case "blocks":
            return f"ctx.blocks.{NAMES[int(str(atom[1]))]}"
        case "div":
            return f"({show(poly_of_key(atom[1]))}) / ({show(poly_of_key(atom[2]))})"
        case "min" | "max":
            return f"t{atom[0]}({show(poly_of_key(atom[1]))}, {show(poly_of_key(atom[2]))})"
        case "round":
            return "round"
    return "?"


# --- ordinary grids -----------------------------------------------------------------------------------


def _axes_read(program: Program) -> frozenset[int]:
    return frozenset(
        one.axis for inside in all_evaluated(program).values() for one in inside if isinstance(one, ir.BlockIndex)
    )


def _axis(program: Program, values: Values, axis: int, read: bool) -> Axis:
    if not read:
        return Axis(False, (), "")
    exact: list[GridUse] = []
    covering: list[GridUse] = []
    offset: list[GridUse] = []
    for access, tensor in _stored(program):
        context = values.context(access)
        if _pins(context, axis):
            continue
        for dim, sub in enumerate(access.subs):
            first = values.poly(sub.index if isinstance(sub, ir.PointSub) else sub.first)
            length = Poly.of(1) if isinstance(sub, ir.PointSub) else values.poly(sub.length)
            width, rest = _parted(first, axis)
            if width is None:
                continue
            extent = values.extent(tensor, dim)
            if length == width:
                if not rest.terms:
                    exact.append(GridUse(extent, width, access.span, access.calls))
                elif not _walks(rest):
                    offset.append(GridUse(extent - rest, width, access.span, access.calls))
            elif values.holds(rest, context) and values.holds(width - rest - length, context):
                covering.append(GridUse(extent, width, access.span, access.calls))
    uses = exact or _strides(program, axis) or covering or offset
    return Axis(True, tuple(uses), "" if uses else _why_unknown(program, axis))


def _walks(poly: Poly) -> bool:
    """Whether a value changes between blocks or rounds, as far as its atoms show."""
    return any(poly.mentions(kind) for kind in CHANGING)


def _parted(first: Poly, axis: int) -> tuple[Poly | None, Poly]:
    """`(T, rest)` of a start `b * T + rest`."""
    block: Atom = ("block", axis)
    if not first.is_linear_in(block):
        return None, first
    width = first.coefficient(block)
    if not width.terms or _walks(width):
        return None, first
    return width, first.without(block)


def _stored(program: Program) -> Iterator[tuple[ir.Access, ir.Tensor]]:
    for statement in statements_in(program):
        if isinstance(statement, ir.Store) and isinstance(statement.access.base, ir.Tensor):
            yield statement.access, statement.access.base


def _pins(context: Context, axis: int) -> bool:
    """Whether a condition there picks one block."""
    block: Atom = ("block", axis)
    for at in context.chain():
        if at.condition is not None and at.loop is None:
            for given in at.given:
                if block in given.atoms and -given in at.given:
                    return True
    return False


def _strides(program: Program, axis: int) -> list[GridUse]:
    """`range(b * T, N, S * T)`, however it counts: the axis has S blocks."""
    symbolic = symbolic_values_of(program)
    block: Atom = ("block", axis)
    found: list[GridUse] = []

    def consider(poly: Poly, place: ir.Expression | ir.Access) -> None:
        for atom in poly.atoms:
            if symbolic.loop_of(atom) is None:
                continue
            stride = stride_of(poly, axis, atom)
            if stride is None or len(stride.terms) != 1:
                continue
            ((monomial, c),) = stride.terms.items()
            if c == 1 and len(monomial) == 1 and monomial[0][0] in ("const", "param", "dim"):
                found.append(GridUse(_at_constants(program, stride), Poly.of(1), place.span, place.calls))

    for loop in symbolic.loops.values():
        if loop.value is not None and block in loop.value.atoms:
            place = loop.statement.step if isinstance(loop.statement, ir.For) else loop.statement.condition
            consider(loop.value, place)
    if not found:
        for access, _ in _stored(program):
            for sub in access.subs:
                first = symbolic.poly(sub.index if isinstance(sub, ir.PointSub) else sub.first)
                if block in first.atoms:
                    consider(first, access)
    return found


def _at_constants(program: Program, poly: Poly) -> Poly:
    def known(atom: Atom) -> Poly | None:
        return Poly.of(program.constants[str(atom[1])].value) if atom[0] == "const" else None

    return poly.substitute(known)


def _why_unknown(program: Program, axis: int) -> str:
    name = f"ctx.block.{NAMES[axis]}"
    if any(True for _ in _stored(program)):
        return f"no stored span starts at `{name} * T` with length T, so nothing says how many blocks there are"
    return f"nothing is stored at a place that `{name}` gives, so nothing says how many blocks there are"


# --- persistent grids ---------------------------------------------------------------------------------


def _caps(program: Program, values: Values) -> tuple[CellCap, ...]:
    found: list[CellCap] = []
    barriers = {s.tensor.name for s in statements_in(program) if isinstance(s, ir.Barrier)}

    def consider(tensor: ir.Tensor, dim: int, first: Poly, place: ir.Access | ir.Statement) -> None:
        if tensor.name in barriers or len(first.terms) != 1:
            return
        ((monomial, c),) = first.terms.items()
        if c != 1 or len(monomial) != 1 or monomial[0][0] != "block":
            return
        axis = int(str(monomial[0][1]))
        extent = values.extent(tensor, dim)
        context = values.context(place)
        if not _bounded(values, context, monomial[0], extent):
            found.append(CellCap(extent, tensor, dim, axis, place.span, place.calls))

    for statement, loads in loads_of(program).items():
        if isinstance(statement, ir.Atomic):
            consider(statement.tensor, 0, values.poly(statement.index), statement)
        if isinstance(statement, ir.Store) and isinstance(statement.access.base, ir.Tensor):
            for dim, sub in enumerate(statement.access.subs):
                if isinstance(sub, ir.PointSub):
                    consider(statement.access.base, dim, values.poly(sub.index), statement.access)
                elif sub.static == 1 or values.poly(sub.length).constant == 1:
                    consider(statement.access.base, dim, values.poly(sub.first), statement.access)
        for access in loads:
            if isinstance(access.base, ir.Tensor) and access.is_point:
                for dim, sub in enumerate(access.subs):
                    if isinstance(sub, ir.PointSub):
                        consider(access.base, dim, values.poly(sub.index), access)
    return tuple(found)


def _bounded(values: Values, context: Context, block: Atom, extent: Poly) -> bool:
    """Whether a condition keeps the block index below something there, or the grid is the extent."""
    index = Poly({(block,): 1})
    if values.holds(extent - 1 - index, context):
        return True
    for at in context.chain():
        if at.condition is not None and at.loop is None:
            for given in at.given:
                factor = given.coefficient(block).constant
                if factor is not None and factor < 0:
                    return True
    return False


def _useful(program: Program, values: Values) -> tuple[tuple[GridUse, ...], bool]:
    """The loops whose rounds are the useful work, and whether they are the whole of it."""
    uses: dict[tuple[object, object], GridUse] = {}
    direct: set[ir.Variable] = set()
    known = True
    seen = False

    def mentions(expression: ir.Expression) -> bool:
        stack = [expression]
        while stack:
            at = stack.pop()
            if isinstance(at, ir.BlockIndex) and at.axis == 0:
                return True
            if isinstance(at, ir.VariableRef) and at.variable in direct:
                return True
            stack.extend(children_of(at))
        return False

    def strided(poly: Poly, context: Context, place: ir.Expression) -> bool:
        """Every part of a value that holds the block walks the grid, below a bound that is known."""
        for part in _parts(poly):
            bound = _bound_of(values, part, context)
            if bound is None:
                return False
            uses.setdefault((bound[0].key, bound[1].key), GridUse(*bound, place.span, place.calls))
        return True

    def subscript(access: ir.Access) -> bool:
        context = values.context(access)
        fine = True
        for sub in access.subs:
            first = sub.index if isinstance(sub, ir.PointSub) else sub.first
            if isinstance(sub, ir.SliceSub) and mentions(sub.length):
                fine = False
            if mentions(first):
                poly = values.poly(first)
                slot = poly == Poly.atom("block", 0) and (
                    isinstance(sub, ir.PointSub) or values.poly(sub.length).constant == 1
                )
                fine = fine and (slot or strided(poly, context, first))
        return fine

    def consumed(statement: ir.Statement) -> bool:
        """Whether each use of the block in a statement is one that says where work ends."""
        context = values.context(statement)
        fine = all(
            subscript(inner.access) for root in expressions_in(statement) for inner in walk(root)
            if isinstance(inner, ir.Load)
        )
        match statement:
            case ir.Define(variable=variable, value=bound):
                if bound is not None and mentions(bound):
                    direct.add(variable)
                    fine = fine and isinstance(variable.type, ir.ScalarT) and variable.type.dtype != "bool"
            case ir.Assign(variable=variable, value=new):
                if mentions(new):
                    direct.add(variable)
                    fine = fine and isinstance(variable.type, ir.ScalarT) and variable.type.dtype != "bool"
            case ir.Store(access=access, value=stored):
                fine = subscript(access) and fine and not mentions(stored)
            case ir.DefineView(access=access):
                fine = subscript(access) and fine
            case ir.For(lo=lo, hi=hi, step=step):
                fine = fine and not mentions(hi) and not mentions(step)
                loop = values.loop(statement)
                if mentions(lo) and loop.value is not None:
                    inside = Context(context, loop, loop.index, None, statement, _walk_bound(loop.hi, loop.value), 0)
                    fine = fine and strided(loop.value, inside, lo)
            case ir.While(condition=condition) | ir.If(condition=condition):
                if mentions(condition):
                    whole = values.condition(condition)
                    fine = fine and _bounds_only(values, whole)
            case ir.Atomic(index=index, operands=operands):
                fine = fine and not any(mentions(operand) for operand in operands)
                if mentions(index):
                    fine = fine and values.poly(index) == Poly.atom("block", 0)
            case ir.Evaluate(value=evaluated):
                fine = fine and not mentions(evaluated)
            case ir.UnsupportedCall(arguments=arguments):
                fine = fine and not any(mentions(argument) for argument in arguments)
        return fine

    for statement in statements_in(program):
        known = consumed(statement) and known
        seen = seen or bool(direct) or any(
            isinstance(e, ir.BlockIndex) for root in expressions_in(statement) for e in walk(root)
        )
    return tuple(uses.values()), known and bool(uses)


def _walk_bound(hi: Poly | None, current: Poly) -> tuple[Poly, ...]:
    return () if hi is None else (hi - 1 - current,)


def _parts(poly: Poly) -> list[Poly]:
    """The sums that hold the block index, at any depth of `/` and `%`."""
    found: list[Poly] = []
    stack = [poly]
    while stack:
        at = stack.pop()
        if ("block", 0) in at.atoms:
            found.append(at)
        for atom in at.atoms:
            if atom[0] in ("div", "min", "max"):
                stack.extend(
                    inner for inner in (poly_of_key(atom[1]), poly_of_key(atom[2])) if inner.mentions("block")
                )
    return found


def _bound_of(values: Values, part: Poly, context: Context) -> tuple[Poly, Poly] | None:
    """`(hi, F)` where the value is `F * (b + round * grid) + ...`, kept below `hi` there."""
    grid = Poly.atom("blocks", 0)
    for atom in part.atoms:
        if values.loop_of(atom) is None or stride_of(part, 0, atom) != grid:
            continue
        for given in values.given(context):
            if stride_of(given, 0, atom) != grid:
                continue
            factor = -given.coefficient(("block", 0))
            if not values.holds(factor - 1, context):
                continue
            hi = given.without(("block", 0)).without(atom) + 1
            if not _walks(hi):
                return hi, factor
    return None


def _bounds_only(values: Values, condition: Condition) -> bool:
    """Whether a condition on the block only bounds a walk over the grid (`v < n`), counted where the walk is used."""
    if isinstance(condition, Truth):
        return True
    grid = Poly.atom("blocks", 0)
    for poly in polys(condition):
        if poly.mentions("block"):
            walks = [a for a in poly.atoms if values.loop_of(a) is not None and stride_of(poly, 0, a) == grid]
            if not walks:
                return False
    return True


__all__ = [
    "Axis",
    "CellCap",
    "Grid",
    "GridConstant",
    "GridDisagrees",
    "GridUnknown",
    "GridUse",
    "blocks_at",
    "cap_at",
    "count_at",
    "describe",
    "evaluate",
    "grid_of",
    "has_one_axis",
    "persistent_blocks_at",
    "show",
    "useful_work_at",
]

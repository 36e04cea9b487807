"""The plan of a CTA's shared memory: one buffer, in which things that do not live at once share bytes.

Two kinds of things need it: tile variables that other threads read, and scratch that a single statement uses
(the staged operands of a product, the partial results of a row that several warps hold). A variable lives from
its definition to its last use, and to the end of every loop that it enters from outside.
"""

from __future__ import annotations

from phobos.language.scalars import scalar
from phobos.lowering import ops, walk
from phobos.semantics import ir
from phobos.value import value

ALIGNMENT_BYTES = 16


@value
class Scratch:
    """Bytes that `statement` needs while it runs (a loop: over all its rounds), called `purpose`."""

    statement: ir.Statement
    purpose: str
    bytes: int
    alignment: int = ALIGNMENT_BYTES


Thing = ir.Variable | Scratch


@value
class Place:
    """`thing` has `bytes` at `offset` from statement number `first` to `last`; rows lie `pitch` elements apart."""

    thing: Thing
    offset: int
    bytes: int
    pitch: int
    first: int
    last: int

    def overlaps(self, other: Place) -> bool:
        return self.offset < other.offset + other.bytes and other.offset < self.offset + self.bytes


@value
class SharedPlan:
    """`places` by thing; `bytes` is the size of the buffer, `alignment` that of its first byte."""

    places: dict[Thing, Place]
    bytes: int
    alignment: int


def plan(
    body: ir.Block,
    variables: dict[ir.Variable, str],
    scratches: list[Scratch],
    padded: frozenset[ir.Variable] = frozenset(),
) -> SharedPlan:
    """First fit, largest first, of everything by its lifetime. Rows of `padded` tiles lie 16 bytes further apart."""
    spans = _lifetimes(body, set(variables), {s.statement: s for s in scratches})
    transposed = _transposed(body)
    wanted: list[tuple[Thing, int, int]] = [
        (variable, *_tile_bytes(variable, variable in transposed, variable in padded))
        for variable in variables
        if variable in spans
    ]
    wanted += [(scratch, scratch.bytes, 0) for scratch in scratches]
    places: dict[Thing, Place] = {}
    order = sorted(range(len(wanted)), key=lambda i: (-wanted[i][1], spans[wanted[i][0]][0], i))
    for i in order:
        thing, size, pitch = wanted[i]
        first, last = spans[thing]
        others = sorted(
            (p for p in places.values() if p.first <= last and first <= p.last), key=lambda place: place.offset
        )
        alignment = thing.alignment if isinstance(thing, Scratch) else ALIGNMENT_BYTES
        offset = 0
        for other in others:
            if offset + size <= other.offset:
                break
            offset = max(offset, -(-(other.offset + other.bytes) // alignment) * alignment)
        places[thing] = Place(thing, offset, size, pitch, first, last)
    alignment = max((s.alignment for s in scratches), default=ALIGNMENT_BYTES)
    return SharedPlan(places, max((p.offset + p.bytes for p in places.values()), default=0), alignment)


def _tile_bytes(variable: ir.Variable, transposed: bool, padded: bool) -> tuple[int, int]:
    """Bytes of a shared tile, and its pitch: one access width more where columns are read, against bank conflicts."""
    assert isinstance(variable.type, ir.TileT)
    rows, columns = ops.matrix_shape(variable.type.shape)
    size = scalar(variable.type.dtype).bytes
    pitch = columns + (max(1, 4 // size) if transposed and rows > 1 and columns % 2 == 0 else 0)
    if padded:
        pitch = columns + ALIGNMENT_BYTES // size
    return -(-rows * pitch * size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES, pitch


def _transposed(body: ir.Block) -> set[ir.Variable]:
    flattened: set[ir.Variable] = set()
    found: set[ir.Variable] = set()
    for statement in walk.statements(body):
        for root in walk.expressions(statement):
            for one in walk.every(root):
                if isinstance(one, ir.BuiltinCall) and one.arguments and isinstance(one.arguments[0], ir.VariableRef):
                    if one.name == "transpose":
                        found.add(one.arguments[0].variable)
                    elif one.name in ("flat", "gather"):
                        flattened.add(one.arguments[0].variable)
    return found - flattened


def _lifetimes(
    body: ir.Block, variables: set[ir.Variable], scratches: dict[ir.Statement, Scratch]
) -> dict[Thing, tuple[int, int]]:
    """First and last statement number of each, statements numbered in the order of the text."""
    spans: dict[Thing, tuple[int, int]] = {}
    views: dict[ir.Variable, ir.Variable] = {}
    count = 0

    def touch(thing: Thing, at: int) -> None:
        first, _ = spans.get(thing, (at, at))
        spans[thing] = (first, at)

    def visit(block: ir.Block) -> None:
        nonlocal count
        for statement in block.statements:
            count += 1
            start = count
            for variable in mentioned(statement):
                variable = views.get(variable, variable)
                if variable in variables:
                    touch(variable, start)
            if isinstance(statement, ir.DefineView) and isinstance(statement.access.base, ir.Variable):
                views[statement.variable] = views.get(statement.access.base, statement.access.base)
            if statement in scratches:
                touch(scratches[statement], start)
            before = dict(spans)
            for inner in walk.blocks(statement):
                visit(inner)
            if isinstance(statement, (ir.For, ir.While)):
                count += 1
                for thing, (first, last) in spans.items():
                    if thing in before and last > start:
                        spans[thing] = (first, count)
                if statement in scratches:
                    spans[scratches[statement]] = (start, count)

    visit(body)
    return spans


def mentioned(statement: ir.Statement) -> set[ir.Variable]:
    """The variables a statement itself defines, reads or writes."""
    found: set[ir.Variable] = set()
    match statement:
        case ir.Define(variable=variable) | ir.Assign(variable=variable) | ir.DefineView(variable=variable):
            found.add(variable)
        case ops.Reduce(result=variable) | ops.Dot(result=variable) | ops.RunningSum(tile=variable):
            found.add(variable)
    access = statement.access if isinstance(statement, (ir.Store, ir.DefineView)) else None
    if access is not None and isinstance(access.base, ir.Variable):
        found.add(access.base)
    for root in walk.expressions(statement):
        for one in walk.every(root):
            if isinstance(one, ir.VariableRef):
                found.add(one.variable)
            elif isinstance(one, ir.Load) and isinstance(one.access.base, ir.Variable):
                found.add(one.access.base)
    return found

"""All decisions about one kernel, in the order in which they depend on each other.

`decide(program, options)` chooses, `lower` adds where threads must wait; both are pure. What is decided is read by the
emitter, by `phobos occupancy`, by hover and by the rules on shared memory, tensor cores and pipelines, so that they
cannot disagree.
"""

from __future__ import annotations

from phobos.language.scalars import scalar
from phobos.lowering import hazards, homes, ops, shared, walk
from phobos.lowering.layouts import Layouts, choose
from phobos.lowering.normal import normalise
from phobos.lowering.options import MULTIPLE, Options
from phobos.lowering.pipelined import DYNAMIC_BYTES, STATIC_BYTES, Means, Pipelines, pipelines_of
from phobos.lowering.products import Product, against_tensor_cores, padded, products_of
from phobos.lowering.shared import Scratch, SharedPlan
from phobos.semantics import ir
from phobos.semantics.masks import Mask, masks_of
from phobos.semantics.program import Program, Promise, fact
from phobos.semantics.values import Values, values_of
from phobos.value import value


@value
class Decisions:
    """What is decided of a kernel: `homes` are the shared tile variables with their reasons; `scratches` what single
    statements need. `origins` gives for each loop of `body` the loop of the program that it was.
    """

    program: Program
    body: ir.Block
    origins: dict[ir.Statement, ir.Statement]
    values: Values
    homes: dict[ir.Variable, str]
    layouts: Layouts
    products: dict[ir.Statement, Product]
    pipelines: Pipelines
    scratches: dict[ir.Statement, Scratch]
    shared: SharedPlan

    @property
    def most_tiles(self) -> tuple[tuple[ir.Variable, int], ...]:
        """The declared tiles in shared memory where they take the most at once, with their bytes: what PH402 counts.

        Only cells count. What is put between and beside them (against bank conflicts, for a step of a product, for
        sums across warps) is no business of the kernel's author.
        """
        places = self.shared.places
        tiles = [t for t in places if isinstance(t, ir.Variable) and t.kind in ("var", "let") and t.name]
        best: tuple[tuple[ir.Variable, int], ...] = ()
        for at in sorted({places[tile].first for tile in tiles}):
            alive = tuple(
                (tile, ops.cells(tile.type) * scalar(tile.type.dtype).bytes)
                for tile in tiles
                if places[tile].first <= at <= places[tile].last and isinstance(tile.type, ir.TileT)
            )
            best = max(best, alive, key=total_bytes)
        return best


@value
class Lowered:
    """Decisions, and a body in which threads wait where they must. `two_phase` statements read before they store.

    `between_blocks` says why threads must wait between two blocks that one CTA runs, where they must.
    """

    program: Program
    options: Options
    body: ir.Block
    values: Values
    masks: dict[ir.Access, tuple[Mask | None, ...]]
    homes: dict[ir.Variable, str]
    layouts: Layouts
    products: dict[ir.Statement, Product]
    pipelines: dict[ir.Statement, ops.Dot]
    scratches: dict[ir.Statement, Scratch]
    shared: SharedPlan
    most_tiles: tuple[tuple[ir.Variable, int], ...]
    two_phase: frozenset[ir.Statement]
    between_blocks: str | None


DEFAULTS = Options()


@fact
def decisions_of(program: Program) -> Decisions:
    """What is decided of a program without problems where neither card nor launch is known."""
    return decide(program)


def decide(program: Program, options: Options = DEFAULTS) -> Decisions:
    """Everything that can be chosen before it is known where threads must wait."""
    values = values_of(program)
    body, origins = normalise(program)
    at_home = homes.shared_variables(body)
    reasons = against_tensor_cores(program, body)
    layouts = choose(
        body, at_home, program.launch.threads, values, lambda dot: reasons[dot] is None, vectors=options.vectors
    )
    products = products_of(body, layouts, at_home, reasons, options.arch)
    taken = sum(ops.cells(v.type) * scalar(v.type.dtype).bytes for v in at_home if isinstance(v.type, ir.TileT))
    room = (DYNAMIC_BYTES if "dynshared" in program.flags else STATIC_BYTES) - taken
    means = Means(at_home, room, "pipeline" in program.flags, options.arch)
    pipelines = pipelines_of(body, products, means, values, origins)
    scratches = {s.statement: s for s in _scratches(body, layouts, products)}
    plan = shared.plan(body, at_home, list(scratches.values()), padded(products))
    return Decisions(program, body, origins, values, at_home, layouts, products, pipelines, scratches, plan)


def lower(program: Program, options: Options = DEFAULTS) -> Lowered:
    """Decide everything about a program without problems."""
    if options.keep:
        from phobos.lowering.on_chip_form import kept_on_chip  # which no start of the checker needs

        program = kept_on_chip(program, options.keep)
    if options.multiples:
        program = specialised(program, options.multiples)
    made = decide(program, options)
    waits = hazards.place(made.body, made.layouts, made.shared, made.values, made.scratches, made.origins)
    return Lowered(
        program,
        options,
        waits.body,
        made.values,
        masks_of(program),
        made.homes,
        made.layouts,
        made.products,
        made.pipelines.loops,
        made.scratches,
        made.shared,
        made.most_tiles,
        waits.two_phase,
        waits.between_blocks,
    )


def total_bytes(tiles: tuple[tuple[ir.Variable, int], ...]) -> int:
    return sum(size for _, size in tiles)


def specialised(program: Program, multiples: tuple[str, ...]) -> Program:
    """The same program with a promise more for each of these extents, which hold at the launch it is made for."""
    promises = list(program.promises)
    for name in multiples:
        if name in program.dims and not any(p.dim == name and p.tile % MULTIPLE == 0 for p in promises):
            span = program.dims[name].span
            promises.append(Promise(name, MULTIPLE, None, span, span, span))
    fields = {slot: getattr(program, slot) for slot in Program.__slots__ if not slot.startswith("_")}
    return Program(**{**fields, "promises": tuple(promises)})


def _scratches(body: ir.Block, layouts: Layouts, products: dict[ir.Statement, Product]) -> list[Scratch]:
    found: list[Scratch] = []
    for statement in walk.statements(body):
        match statement:
            case ops.Reduce(kind=kind, source=source):
                layout = layouts.of(statement)
                if layout.warps_along > 1:
                    assert isinstance(source.type, ir.TileT)
                    cell = 16 if kind == "rowargmax" else max(4, scalar(source.type.dtype).bytes)
                    size = layout.threads // layout.lanes_along * layout.row_registers * cell
                    found.append(Scratch(statement, "the partial results of a row", shared_size(size)))
            case ops.Dot():
                if size := products[statement].staged_bytes * products[statement].stages:
                    found.append(Scratch(statement, "the staged operands of a product", shared_size(size)))
            case ir.Atomic(result=ir.Variable()):
                found.append(Scratch(statement, "the result of an atomic", shared_size(8)))
    return found


def shared_size(size: int) -> int:
    unit = shared.ALIGNMENT_BYTES
    return -(-size // unit) * unit

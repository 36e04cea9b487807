"""All decisions about one kernel, in the order in which they depend on each other.

`decide(program, options)` chooses, `lower` adds where threads must wait; both are pure. What is decided is read by the
emitter, by `phobos occupancy`, by hover and by the rules on shared memory, tensor cores and pipelines, so that they
cannot disagree.
"""

from __future__ import annotations

from phobos.language.scalars import scalar
from phobos.lowering import hazards, homes, ops, shared, walk
from phobos.lowering.layouts import Layouts, Units, choose
from phobos.lowering.normal import normalise
from phobos.lowering.options import (
    MOST_REGISTERS,
    RACES,
    REGISTER_UNIT,
    REGISTERS,
    Options,
    room_bytes,
)
from phobos.lowering.panels import ALIGNMENT_BYTES
from phobos.lowering.pipelined import Means, Pipelines, pipelines_of
from phobos.lowering.products import Product, against_tensor_cores, in_registers, padded, products_of
from phobos.lowering.rounds import Rounds
from phobos.lowering.shared import Scratch, SharedPlan
from phobos.lowering.tensorcores import Against, against_warpgroups
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
    rounds: dict[ir.Statement, Rounds]
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
    reasons = against_tensor_cores(program, body)
    at_home, layouts = _places(program, body, values, reasons, options)
    products = products_of(body, layouts, at_home, reasons, program.launch.threads, options.arch)
    small = _small_scratches(body, layouts)
    room = _room(program, at_home, small, options)
    registers = _registers(program, options)
    means = Means(at_home, room, registers, "pipeline" in program.flags, options)
    if options.instrument == RACES:  # marks stand where statements do, so none runs rounds ahead
        pipelines = Pipelines({}, {}, (), "races are looked for")
    else:
        pipelines = pipelines_of(body, products, means, values, origins)
    products = in_registers(products, registers)
    scratches = {s.statement: s for s in (*small, *_scratches(body, products, pipelines))}
    plan = shared.plan(body, at_home, list(scratches.values()), padded(products))
    return Decisions(program, body, origins, values, at_home, layouts, products, pipelines, scratches, plan)


def _places(
    program: Program,
    body: ir.Block,
    values: Values,
    reasons: dict[ir.Statement, Against | None],
    options: Options,
) -> tuple[dict[ir.Variable, str], Layouts]:
    """Homes and layouts. A left operand of tensor cores stays in registers where the layouts then agree to it."""
    threads = program.launch.threads
    found = homes.left_made_where_multiplied(body)
    held = frozenset(dot for dot in found if reasons[dot] is None and _may_be_held(dot))
    while True:
        at_home = homes.shared_variables(body, held)
        held = frozenset(dot for dot in held if homes.tile_named(dot.left) not in at_home)
        units = Units(
            lambda dot: reasons[dot] is None,
            lambda dot: reasons[dot] is None and not against_warpgroups(dot, threads, options.arch),
            held,
        )
        layouts = choose(body, at_home, threads, values, units, vectors=options.vectors)
        agreed = frozenset(dot for dot in held if _is_held(dot, layouts))
        if agreed == held:
            return at_home, layouts
        held = agreed


def _may_be_held(dot: ops.Dot) -> bool:
    """Whether its left operand is a tile of known shape that a warp could multiply from its registers."""
    tile = homes.tile_named(dot.left)
    return tile is not None and ops.is_static(tile.type) and tile.type.dtype in ("f16", "bf16", "f32")  # type: ignore[union-attr]


def _is_held(dot: ops.Dot, layouts: Layouts) -> bool:
    """Every warp holds the rows of the left operand that it multiplies, whole."""
    tile = homes.tile_named(dot.left)
    assert tile is not None
    mine, result = layouts.of(tile), layouts.of(dot)
    return (
        mine.is_fragment
        and result.is_fragment
        and mine.warps_across == 1
        and mine.warps_down == result.warps_down
        and mine.rows_exact
        and mine.columns_exact
    )


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
        made.pipelines.rounds,
        made.scratches,
        made.shared,
        made.most_tiles,
        waits.two_phase,
        waits.between_blocks,
    )


def total_bytes(tiles: tuple[tuple[ir.Variable, int], ...]) -> int:
    return sum(size for _, size in tiles)


def specialised(program: Program, multiples: tuple[tuple[str, int], ...]) -> Program:
    """The same program with a promise more for each of these extents, which hold at the launch it is made for."""
    promises = list(program.promises)
    for name, unit in multiples:
        if name in program.dims and not any(p.dim == name and p.tile % unit == 0 for p in promises):
            span = program.dims[name].span
            promises.append(Promise(name, unit, None, span, span, span))
    fields = {slot: getattr(program, slot) for slot in Program.__slots__ if not slot.startswith("_")}
    return Program(**{**fields, "promises": tuple(promises)})


def _room(program: Program, at_home: dict[ir.Variable, str], small: list[Scratch], options: Options) -> int:
    """Bytes that are left for what products stage, beside tiles and, where no more can be had, what may stand between
    and beside them."""
    dynamic = "dynshared" in program.flags
    room = room_bytes(options.arch, dynamic, program.launch.min_blocks or 1)
    for variable in at_home:
        if isinstance(variable.type, ir.TileT):
            rows, _ = ops.matrix_shape(variable.type.shape)
            padding = rows * shared.ALIGNMENT_BYTES if dynamic else 0
            room -= ops.cells(variable.type) * scalar(variable.type.dtype).bytes + padding
    return room - dynamic * sum(scratch.bytes for scratch in small)


def _registers(program: Program, options: Options) -> int:
    """What a thread may have where as many CTAs as the launch asks for share a multiprocessor."""
    launch = program.launch
    together = max(launch.min_blocks or 0, options.together, 1)
    share = REGISTERS // (launch.threads * together) // REGISTER_UNIT * REGISTER_UNIT
    return min(share, MOST_REGISTERS, launch.max_registers or MOST_REGISTERS)


def _small_scratches(body: ir.Block, layouts: Layouts) -> list[Scratch]:
    """What statements need that exchange numbers between threads."""
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
            case ir.Atomic(result=ir.Variable()):
                found.append(Scratch(statement, "the result of an atomic", shared_size(8)))
    return found


def _scratches(body: ir.Block, products: dict[ir.Statement, Product], pipelines: Pipelines) -> list[Scratch]:
    """What products, and the loops around them, need for their operands."""
    found: list[Scratch] = []
    for statement in walk.statements(body):
        match statement:
            case ops.Dot():
                product = products[statement]
                if size := product.staged_bytes * product.stages:
                    alignment = shared.ALIGNMENT_BYTES if product.unit == "fma" else ALIGNMENT_BYTES
                    found.append(Scratch(statement, "the staged operands of a product", shared_size(size), alignment))
            case ir.For() if (rounds := pipelines.rounds.get(statement)) is not None:
                size = shared_size(rounds.bytes)
                found.append(Scratch(statement, "the operands of rounds to come", size, ALIGNMENT_BYTES))
    return found


def shared_size(size: int) -> int:
    unit = shared.ALIGNMENT_BYTES
    return -(-size // unit) * unit

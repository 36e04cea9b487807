"""What the threads of a CTA compute together: row reductions, running sums, products, atomics."""

from __future__ import annotations

from phobos.codegen import spelling
from phobos.codegen.context import Context
from phobos.codegen.elementwise import Loop
from phobos.codegen.expressions import Element, as_type, dtype_of, point
from phobos.lowering import ops
from phobos.lowering.chains import chains_of
from phobos.lowering.layout import Layout
from phobos.semantics import ir

_FUNCTION = {"rowmax": "ph_larger", "rowsum": "ph_sum", "rowargmax": "ph_first_largest"}
_LOWEST = {"double": "(-__longlong_as_double(0x7ff0000000000000LL))", "float": "(-__int_as_float(0x7f800000))"}


def reduce(context: Context, statement: ops.Reduce) -> None:
    """Each thread reduces what it owns of a row; then the threads along the row combine, through a warp's
    registers, and through shared memory where the row is held by several warps."""
    out, layout = context.out, context.layouts.of(statement)
    source, kind = statement.source, statement.kind
    assert isinstance(source.type, ir.TileT) and isinstance(statement.result.type, ir.TileT)
    dtype = dtype_of(source)
    number = spelling.VALUES[dtype]
    part = f"ph_at<{number}>" if kind == "rowargmax" else number
    lowest = _LOWEST.get(number, "(-9223372036854775807LL - 1)" if number == "long long" else "(-2147483647 - 1)")
    start = {"rowsum": spelling.zero(dtype), "rowmax": lowest, "rowargmax": f"{{{lowest}, {layout.columns}}}"}[kind]
    combine = f"{_FUNCTION[kind]}{{}}"
    rows = layout.row_registers
    chains = chains_of(kind, dtype, layout, context.program.launch)
    loop = Loop(context, layout, tuple(n for n in source.type.shape if isinstance(n, int)))
    with out.block():
        loop.read(source)
        out.line(f"{part} part[{rows * chains}];")
        with out.each("i", rows * chains) as i:
            out.line(f"part[{i}] = {spelling.bare(start)};")

        def body(element: Element, i: str, column: str, register: str) -> None:
            text = spelling.bare(as_type(context, source, dtype, element))
            if kind == "rowargmax":
                text = f"ph_at<{number}>{{{text}, {element.within(source.type)[1]}}}"
            chain = spelling.times(f"{spelling.factor(column)} % {chains}", rows)
            one = i if chains == 1 else spelling.plus(i, chain)
            out.line(f"part[{one}] = {combine}(part[{one}], {text});")

        loop.twice(loop.whole(), lambda masked: loop.run(body, masked))
        if chains > 1:
            with out.rows(f"for (int i = {rows}; i < {rows * chains}; ++i)"):
                out.line(f"part[i % {rows}] = {combine}(part[i % {rows}], part[i]);")
        lanes, warps = layout.lanes_along, layout.warps_along
        if lanes > 1:
            with out.each("i", rows) as i:
                out.line(f"part[{i}] = ph_combine<{lanes}>(part[{i}], {combine});")
        if warps > 1:
            scratch = context.lowered.shared.places[context.lowered.scratches[statement]]
            first, stride = _first_group(layout, loop)
            out.line(f"{part}* const parts = {spelling.shared(part, scratch.offset)};")
            with out.block(f"if (tid % {lanes} == 0)"), out.each("i", rows) as i:
                mine = spelling.plus(spelling.times(f"tid / {lanes}", rows), i)
                out.line(f"parts[{mine}] = part[{i}];")
            out.line("__syncthreads();")
            with out.each("i", rows) as i:
                out.line(f"part[{i}] = parts[{_of_group(first, rows, i)}];")
                out.line("#pragma unroll")
                other = _of_group(spelling.plus(first, spelling.times("w", stride)), rows, i)
                out.line(f"for (int w = 1; w < {warps}; ++w) part[{i}] = {combine}(part[{i}], parts[{other}]);")
        if statement in context.lowered.two_phase:
            out.line("__syncthreads();  // all is read before any is stored")
        _keep_rows(context, statement, loop)


def _of_group(group: str, rows: int, i: str) -> str:
    """Where a group of lanes has the partial result of row register `i`."""
    return spelling.plus(spelling.times(spelling.factor(group) if rows > 1 else group, rows), i)


def _first_group(layout: Layout, loop: Loop) -> tuple[str, int]:
    """The first of the groups of lanes that hold a thread's row, and how far apart they are."""
    if layout.is_fragment:
        return f"tid / 32 % {layout.warps_down} * 8 + tid % 32 / 4", 8 * layout.warps_down
    return ("0" if layout.downs == 1 else f"{loop.down} * {layout.warps_along}"), 1


def _keep_rows(context: Context, statement: ops.Reduce, loop: Loop) -> None:
    out, result, layout = context.out, statement.result, loop.layout
    assert isinstance(result.type, ir.TileT)
    dtype = result.type.dtype
    name, place = context.name(result), context.place(result)
    with out.each("i", layout.row_registers) as i:
        value = f"part[{i}].at" if statement.kind == "rowargmax" else spelling.rounded(f"part[{i}]", dtype)
        if place is None:
            out.line(f"{name}[{i}] = {value};")
            return
        row = "0" if layout.rows == 1 else f"({loop.row(i)})"
        out.line(
            f"if ({loop.along} == 0 && {row} < {layout.rows}) "
            f"{name}[{row} * {place.pitch}] = {spelling.to_cell(value, dtype)};"
        )


def running_sum(context: Context, statement: ops.RunningSum) -> None:
    """Sums down the columns of a shared tile, in place: a thread a column."""
    out, tile = context.out, statement.tile
    assert isinstance(tile.type, ir.TileT)
    rows, columns = ops.matrix_shape(tile.type.shape)
    dtype, name = tile.type.dtype, context.name(tile)
    place = context.place(tile)
    if place is None:
        return  # one element: its own sum
    with out.block(f"for (int c = tid; c < {columns}; c += {context.program.launch.threads})"):
        out.line(f"{spelling.VALUES[dtype]} sum = {spelling.zero(dtype)};")
        with out.block(f"for (int r = 0; r < {rows}; ++r)"):
            cell = f"{name}[r * {place.pitch} + c]"
            out.line(f"sum = {spelling.bare(spelling.binary('+', 'sum', spelling.from_cell(cell, dtype), dtype))};")
            out.line(f"{cell} = {spelling.to_cell('sum', dtype)};")


def atomic(context: Context, statement: ir.Atomic) -> None:
    """Once per CTA, by thread 0; all earlier accesses of the CTA come before it, all later ones after it."""
    out = context.out
    lead = ir.Access(
        statement.span,
        statement.calls,
        statement.tensor,
        (
            ir.PointSub(statement.index),
            *(
                ir.PointSub(ir.IntLiteral(statement.span, (), ir.ScalarT("index"), 0))
                for _ in statement.tensor.extents[1:]
            ),
        ),
    )
    operands = ", ".join(as_type(context, operand, "i32") for operand in statement.operands)
    call = f"ph_atomic_{statement.kind}(&{point(context, lead)}, {operands})"
    out.line("__syncthreads();")
    if statement.result is None:
        with context.instrument.atomic(context, statement, lead):
            out.line(f"if (tid == 0) {call};")
        out.line("__syncthreads();")
        return
    scratch = context.lowered.shared.places[context.lowered.scratches[statement]]
    slot = f"*{spelling.shared('int', scratch.offset)}"
    with context.instrument.atomic(context, statement, lead):
        out.line(f"if (tid == 0) {slot} = {call};")
    out.line("__syncthreads();")
    kind = spelling.VALUES[dtype_of(ir.VariableRef(statement.span, (), statement.result.type, statement.result))]
    name = context.name(statement.result)
    out.line(f"{name} = {slot};" if statement.result in context.declared else f"const {kind} {name} = {slot};")
    context.declared.add(statement.result)

"""Products: operands staged in shared memory a step of K at a time, multiplied from there into registers."""

from __future__ import annotations

from contextlib import nullcontext

from phobos.codegen import spelling
from phobos.codegen.context import Context
from phobos.codegen.elementwise import Loop, whole_view
from phobos.codegen.expressions import dtype_of
from phobos.codegen.leaves import Cells, view_of
from phobos.language.scalars import scalar
from phobos.lowering import ops
from phobos.lowering.layout import Layout
from phobos.lowering.products import Operand, Product
from phobos.lowering.vectors import elements_per_access
from phobos.semantics import ir


def product(context: Context, dot: ops.Dot) -> None:
    plan = context.lowered.products[dot]
    out, layout = context.out, plan.layout
    assert isinstance(dot.result.type, ir.TileT)
    number = spelling.VALUES[plan.total]
    result_dtype = dot.result.type.dtype
    in_registers = context.place(dot.result) is None
    direct = in_registers and result_dtype == plan.total
    sums = context.name(dot.result) if direct else "sums"
    with out.block():
        if not direct:
            out.line(f"{number} sums[{layout.registers}];")
        if not (direct and dot.accumulate):
            with out.rows(f"for (int n = 0; n < {layout.registers}; ++n)"):
                out.line(f"{sums}[n] = {spelling.zero(plan.total)};")
        _multiply(context, dot, plan, sums, number)
        if not direct:
            _keep(context, dot, plan, number)


def _multiply(context: Context, dot: ops.Dot, plan: Product, sums: str, number: str) -> None:
    out, layout = context.out, plan.layout
    rows, columns = layout.rows, layout.columns
    sides = [
        _Side(context, plan, plan.left, "left", rows, True, plan.left_pitch),
        _Side(context, plan, plan.right, "right", columns, dot.transposed, plan.right_pitch),
    ]
    length = str(plan.length) if plan.length is not None else sides[0].length
    cell = spelling.CELLS[plan.dtype] if plan.unit == "mma" else number
    if plan.staged_bytes:
        base = context.lowered.shared.places[context.lowered.scratches[dot]].offset
        for side, offset in zip(sides, (0, plan.left_bytes), strict=True):
            if side.operand.staged:
                out.line(f"{cell}* const {side.name} = ({cell}*)(shared + {base + offset});")
    loop = Loop(context, layout, (rows, columns))
    if plan.unit == "mma":
        _on_tensor_cores(context, dot, plan, loop, sides, length, sums)
        return
    staged = [side for side in sides if side.operand.staged]
    if not staged:
        with out.block(f"for (int k = 0; k < {length}; ++k)"):
            _step(context, plan, loop, sides, sums, number, "k", "k")
        return
    with out.block(f"for (long long k0 = 0; k0 < {length}; k0 += {plan.step})"):
        if plan.length is None or plan.length > plan.step:
            out.line("if (k0 > 0) __syncthreads();  // the step before has been read")
        for side in staged:
            side.stage(length)
        out.line("__syncthreads();")
        everything = len(staged) == 2
        if everything or (plan.length is not None and plan.length % plan.step == 0):
            out.line("#pragma unroll")
            head = f"for (int k = 0; k < {plan.step}; ++k)"
        else:
            head = f"for (int k = 0; k < {plan.step} && k0 + k < {length}; ++k)"
        with out.block(head):
            _step(context, plan, loop, sides, sums, number, "k", "(int)k0 + k")


def _on_tensor_cores(
    context: Context, dot: ops.Dot, plan: Product, loop: Loop, sides: list[_Side], length: str, sums: str
) -> None:
    """Steps of K in shared memory as f16 or bf16; each warp multiplies its part in pieces of 16 x 8 x 16."""
    out, layout = context.out, plan.layout
    left, right = sides
    staged = [side for side in sides if side.operand.staged]
    pieces_down, pieces_across = layout.row_steps // 2, layout.column_steps
    warp = "tid / 32" if layout.warps_used * 32 == layout.threads else f"tid / 32 % {layout.warps_used}"
    out.line(f"const int warp_row = {warp} / {layout.warps_across} * {layout.warp_rows};")
    out.line(f"const int warp_column = {warp} % {layout.warps_across} * {layout.warp_columns};")
    out.line("const int lane = tid % 32;")
    with out.block(f"for (long long k0 = 0; k0 < {length}; k0 += {plan.step})"):
        if staged:
            if plan.length is None or plan.length > plan.step:
                out.line("if (k0 > 0) __syncthreads();  // the step before has been read")
            for side in staged:
                side.stage(length)
            out.line("__syncthreads();")
        with out.rows(f"for (int k = 0; k < {plan.step}; k += 16)"):
            out.line(f"unsigned a[{pieces_down}][4], b[{pieces_across}][2];")
            with out.rows(f"for (int i = 0; i < {pieces_down}; ++i)"):
                at = left.half("warp_row + i * 16 + lane % 16", "k + lane / 16 * 8")
                out.line(f"ph_fragment_4(a[i], {at});")
            if dot.transposed:
                at = right.half("warp_column + j * 8 + lane % 8", "k + lane / 8 % 2 * 8")
                load = f"ph_fragment_2(b[j], {at});"
            else:
                at = right.half("k + lane % 16", "warp_column + j * 8")
                load = f"ph_fragment_2_turned(b[j], {at});"
            with out.rows(f"for (int j = 0; j < {pieces_across}; ++j)"):
                out.line(load)
            down, across = f"for (int i = 0; i < {pieces_down}; ++i)", f"for (int j = 0; j < {pieces_across}; ++j)"
            with out.rows(down), out.rows(across):
                columns = layout.column_registers
                upper, lower = f"{sums} + i * {2 * columns} + j * 2", f"{sums} + (i * 2 + 1) * {columns} + j * 2"
                out.line(f"ph_multiply_{plan.dtype}({upper}, {lower}, a[i], b[j]);")


def _step(
    context: Context, plan: Product, loop: Loop, sides: list[_Side], sums: str, number: str, k: str, deep: str
) -> None:
    """One k: a column of the left side times a row of the right one."""
    out, layout = context.out, plan.layout
    left, right = sides
    rows, columns = layout.row_registers, layout.column_registers
    out.line(f"{number} a[{rows}], b[{columns}];")
    group = layout.row_group
    if layout.rows == 1:
        out.line(f"a[0] = {left.cell('0', k, deep)};")
    elif group > 1 and left.operand.staged and left.pitch % group == 0:
        width = min(group, 16 // scalar(plan.dtype).bytes)
        with out.rows(f"for (int i = 0; i < {rows}; i += {width})"):
            row = loop.row("i")
            out.line(f"ph_load<{width}>(a + i, left + {k} * {left.pitch} + {row});")
    else:
        with out.rows(f"for (int i = 0; i < {rows}; ++i)"):
            row = loop.row("i")
            if not layout.rows_exact:
                row = f"min({row}, {layout.rows - 1})"
            out.line(f"a[i] = {left.cell(row, k, deep)};")
    vector = 1 if layout.columns == 1 else layout.vector
    if layout.columns == 1:
        out.line(f"b[0] = {right.cell('0', k, deep)};")
    else:
        with out.rows(f"for (int j = 0; j < {layout.column_steps}; ++j)"):
            column = loop.column("j")
            if not layout.columns_exact:
                column = f"min({column}, {layout.columns - vector})"
            width = min(vector, 16 // scalar(plan.dtype).bytes)
            if right.operand.staged and width > 1 and right.pitch % width == 0:
                for v in range(0, vector, width):
                    out.line(f"ph_load<{width}>(b + j * {vector} + {v}, right + {k} * {right.pitch} + {column} + {v});")
            else:
                with out.rows(f"for (int v = 0; v < {vector}; ++v)"):
                    out.line(f"b[j * {vector} + v] = {right.cell(f'{column} + v', k, deep)};")
    with out.rows(f"for (int i = 0; i < {rows}; ++i)"), out.rows(f"for (int j = 0; j < {columns}; ++j)"):
        out.line(f"{sums}[i * {columns} + j] += a[i] * b[j];")


class _Side:
    """One operand: `lines` rows (left) or columns (right) by K. `k_last`: K is its last axis."""

    def __init__(
        self, context: Context, plan: Product, operand: Operand, name: str, lines: int, k_last: bool, pitch: int
    ) -> None:
        self.context, self.plan, self.operand, self.name = context, plan, operand, name
        self.lines, self.k_last, self.pitch = lines, k_last, pitch
        self.cells: Cells | None = None
        self.length = "0"
        if operand.staged:
            inner = operand.expression
            while isinstance(inner, ir.Convert):
                inner = inner.operand
            prefix = context.names.fresh(name)
            if isinstance(inner, ir.Load):
                view = view_of(context, inner.access, prefix)
            else:
                assert isinstance(inner, ir.VariableRef)
                view = context.views.get(inner.variable) or whole_view(inner.variable)
            self.cells = Cells(context, view, prefix)
            self.length = view.lengths[-1 if k_last else -2]

    def converted(self, text: str) -> str:
        """A cell of the operand as what is multiplied, through the conversions that the user wrote."""
        dtype = self.operand.dtype
        chain: list[str] = []
        inner = self.operand.expression
        while isinstance(inner, ir.Convert):
            chain.insert(0, dtype_of(inner))
            inner = inner.operand
        text = spelling.from_cell(text, dtype)
        for target in (*chain, self.plan.dtype):
            text = spelling.convert(text, dtype, target)
            dtype = target
        return text

    def cell(self, line: str, k: str, deep: str) -> str:
        """The value at (line, k): `k` within the staged step, `deep` within the whole of K."""
        if self.operand.staged:
            return f"{self.name}[{k} * {self.pitch} + {line}]"
        variable = self.operand.variable
        assert variable is not None
        name, place = self.context.name(variable), self.context.place(variable)
        if place is None:
            return self.converted(f"{name}[0]")
        row, column = (line, deep) if self.k_last else (deep, line)
        return self.converted(f"{name}[({row}) * {place.pitch} + {column}]")

    def half(self, row: str, column: str) -> str:
        """The address of a cell of a tensor-core operand, staged or in place, by its own row and column."""
        if self.operand.staged:
            return f"{self.name} + ({row}) * {self.pitch} + {column}"
        variable = self.operand.variable
        assert variable is not None
        place = self.context.place(variable)
        assert place is not None
        deep = ("(int)k0 + " + column) if self.k_last else column
        row = row if self.k_last else "(int)k0 + " + row
        return f"{self.context.name(variable)} + ({row}) * {place.pitch} + {deep}"

    def stage(self, length: str) -> None:
        """Copy one step of K, zero where K or a tensor ends: by k and line, or as it lies for tensor cores."""
        assert self.cells is not None
        context, plan, cells = self.context, self.plan, self.cells
        threads, step = context.program.launch.threads, plan.step
        across = step if self.k_last else self.lines  # cells along the operand's rows
        down = self.lines if self.k_last else step
        ragged = plan.length is None or plan.length % step != 0
        conditions = cells.whole() if not ragged else [*cells.whole(), f"k0 + {step} <= {length}"]
        width = _width(context, cells, across)
        loop = Loop(context, Layout(1, 1, threads, threads, 1, 1), (1, 1))

        narrow = width if cells.unbroken(width) and not (ragged and self.k_last) else 1

        def spell(masked: bool) -> None:
            self._copy(masked, narrow if masked else width, across, down, threads, length, ragged)

        loop.twice(" && ".join(conditions), spell)

    def _copy(self, masked: bool, width: int, across: int, down: int, threads: int, length: str, ragged: bool) -> None:
        assert self.cells is not None
        out, cells = self.context.out, self.cells
        chunks = across // width * down
        rounds = -(-chunks // threads)
        out.line("#pragma unroll" if not masked or width > 1 else f"#pragma unroll {min(rounds, 2)}")
        with out.block(f"for (int e = tid; e < {rounds * threads}; e += {threads})"):
            inner = nullcontext() if chunks % threads == 0 else out.block(f"if (e < {chunks})")
            with inner:
                along = f"e % {across // width}" + (f" * {width}" if width > 1 else "")
                out.line(f"const int down = e / {across // width}, along = {along};")
                line, k = ("down", "along") if self.k_last else ("along", "down")
                at = cells_at(cells, ("down", "k0 + along") if self.k_last else ("k0 + down", "along"))
                cell, empty = spelling.CELLS[cells.dtype], spelling.empty_cell(cells.dtype)
                here = f"{cells.base}[{cells.offset(at)}]"
                condition = ""
                if masked:
                    inside = [cells.inside(at, range(len(cells.shape)))]
                    if ragged:
                        inside.append(f"k0 + {k} < {length}")
                    condition = " && ".join(filter(None, inside))
                if width > 1:
                    cells.note_wide(width)
                    out.line(f"{cell} x[{width}]{' = {}' if condition else ''};")
                    guard = f"if ({condition}) " if condition else ""
                    out.line(f"{guard}ph_load<{width}>(x, &{here});")
                else:
                    out.line(f"const {cell} x[1] = {{{f'{condition} ? {here} : {empty}' if condition else here}}};")
                if self.plan.unit == "mma":
                    self._keep_halves(width)
                    return
                for n in range(width):
                    place = (
                        f"({k} + {n}) * {self.pitch} + {line}" if self.k_last else f"{k} * {self.pitch} + {line} + {n}"
                    )
                    out.line(f"{self.name}[{place}] = {self.converted(f'x[{n}]')};")

    def _keep_halves(self, width: int) -> None:
        """`x` to its place, in one access where its cells are what the instruction takes."""
        out, dtype = self.context.out, self.plan.dtype
        place = f"down * {self.pitch} + along"
        same = self.operand.dtype == dtype and not isinstance(self.operand.expression, ir.Convert)
        if not same:
            out.line(f"{spelling.CELLS[dtype]} y[{width}];")
            for n in range(width):
                out.line(f"y[{n}] = {spelling.to_cell(self.converted(f'x[{n}]'), dtype)};")
        kept = "x" if same else "y"
        if width > 1:
            out.line(f"ph_store<{width}>({self.name} + {place}, {kept});")
        else:
            out.line(f"{self.name}[{place}] = {kept}[0];")


def cells_at(cells: Cells, at: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("0" if n == 1 and name in ("down", "along") else name for n, name in zip(cells.shape, at, strict=True))


def _width(context: Context, cells: Cells, across: int) -> int:
    base = cells.access.base
    if not isinstance(base, ir.Tensor):
        width = cells.shared_width()
    elif not context.lowered.options.vectors or base.name in context.pitches:
        return 1
    else:
        width = elements_per_access(cells.access, context.lowered.values)
    while across % width:
        width //= 2
    return width


def _keep(context: Context, dot: ops.Dot, plan: Product, number: str) -> None:
    """Sums that are not the variable's registers: rounded into them, or stored in shared memory."""
    out, layout = context.out, plan.layout
    assert isinstance(dot.result.type, ir.TileT)
    dtype, name, place = dot.result.type.dtype, context.name(dot.result), context.place(dot.result)
    if place is None:
        with out.rows(f"for (int n = 0; n < {layout.registers}; ++n)"):
            total = f"{name}[n] + {spelling.convert('sums[n]', plan.total, dtype)}" if dot.accumulate else "sums[n]"
            out.line(f"{name}[n] = {spelling.convert(total, plan.total, dtype)};")
        return
    loop = Loop(context, layout, (layout.rows, layout.columns))

    def store(element: object, i: str, column: str, register: str) -> None:
        row, at = element.coordinates  # type: ignore[attr-defined]
        cell = f"{name}[{row} * {place.pitch} + {at}]"
        value = f"sums[{register}]"
        if dot.accumulate:
            value = f"({spelling.convert(spelling.from_cell(cell, dtype), dtype, plan.total)} + {value})"
        out.line(f"{cell} = {spelling.to_cell(spelling.convert(value, plan.total, dtype), dtype)};")

    if any(s.variable is dot.result for s in (plan.left, plan.right)):
        out.line("__syncthreads();  // all is read before any is stored")
    loop.run(store, False, owned=True)

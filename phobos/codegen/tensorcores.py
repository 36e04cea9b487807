"""Products on tensor cores: from panels in shared memory, or from registers on the left, into each warp's sums.

By every warp for itself in pieces of 16 x 8 x 16 (ldmatrix and mma.sync), or by four warps together in pieces of 64
rows (wgmma), which read their operands where they lie.
"""

from __future__ import annotations

from phobos.codegen import spelling, warpgroups
from phobos.codegen.context import Context
from phobos.codegen.products import summing
from phobos.codegen.staging import Side
from phobos.lowering import ops
from phobos.lowering.panels import Panels
from phobos.lowering.products import Operand, Product
from phobos.semantics import ir


class PanelSide(Side):
    """One operand, its staged cells in panels."""

    def __init__(self, context: Context, dot: ops.Dot, plan: Product, left: bool) -> None:
        operand, name = (plan.left, "left") if left else (plan.right, "right")
        lines = plan.layout.rows if left else plan.layout.columns
        super().__init__(context, plan, operand, name, lines, left or dot.transposed, 0)
        found = plan.left_panels if left else plan.right_panels
        assert found is not None
        self.panels: Panels = found

    def lies(self, down: str, along: str) -> str:
        panels, width = self.panels, self.panels.width
        if along.isdigit() or " " in along:
            along = f"({along})"
        inside = along if panels.across == width else f"{along} % {width}"
        panel = "" if panels.across == width else f"{along} / {width} * {panels.lines * width} + "
        rows_per_turn = 128 // panels.row_bytes
        turn = f"{down} % 8" if rows_per_turn == 1 else f"{down} / {rows_per_turn} % {panels.pieces}"
        piece = f"({inside} / 8 ^ {turn}) * 8" if panels.pieces > 1 else "0"
        return f"{panel}{down} * {width} + {piece} + {along} % 8"

    def cell_at(self, row: str, column: str) -> str:
        """The address of a cell for ldmatrix, by its row and column as in the tensor; `column` within the step."""
        if self.operand.staged:
            return f"{self.name} + {self.lies(f'({row})', f'({column})')}"
        variable = self.operand.variable
        assert variable is not None
        place = self.context.place(variable)
        assert place is not None
        row, column = (row, f"(int)k0 + {column}") if self.k_last else (f"(int)k0 + {row}", column)
        return f"{self.context.name(variable)} + ({row}) * {place.pitch} + {column}"


def product(context: Context, dot: ops.Dot) -> None:
    """A product by itself. What its loop has not staged is fetched now."""
    plan, out = context.lowered.products[dot], context.out
    with summing(context, dot, plan) as sums:
        multiply = Multiply(context, dot, sums)
        own = [side for side in multiply.sides if side.operand.staged and not side.operand.fetched]
        for side in own:
            side.open()
        multiply.places()
        if not own and plan.step == plan.length:
            out.line("const long long k0 = 0;")
            multiply.step()
            multiply.wait()
        else:
            length = str(plan.length) if plan.length is not None else own[0].length
            with out.block(f"for (long long k0 = 0; k0 < {length}; k0 += {plan.step})"):
                if plan.length is None or plan.length > plan.step:
                    out.line("if (k0 > 0) __syncthreads();  // the step before has been read")
                for side in own:
                    side.stage(length)
                multiply.staged()
                out.line("__syncthreads();")
                multiply.step()
                multiply.wait()


class Multiply:
    """One product: its sides, and the spelling of a step of K from where they lie into `sums`."""

    def __init__(self, context: Context, dot: ops.Dot, sums: str) -> None:
        self.context, self.dot, self.sums = context, dot, sums
        self.plan = context.lowered.products[dot]
        self.is_held = False
        self.left, self.right = (PanelSide(context, dot, self.plan, left) for left in (True, False))

    @property
    def sides(self) -> tuple[PanelSide, PanelSide]:
        return self.left, self.right

    def places(self) -> None:
        """Name the buffers of the staged sides, and the warp's place."""
        out, plan, layout = self.context.out, self.plan, self.plan.layout
        offset = 0
        for side, size in zip(self.sides, (plan.left_bytes, plan.right_bytes), strict=True):
            if not side.operand.staged:
                continue
            place = self.context.fetched.get((self.dot, side is self.left))
            if place is None:
                base = self.context.lowered.shared.places[self.context.lowered.scratches[self.dot]].offset
                place = spelling.plus("shared", base + offset)
                offset += size
            cell = spelling.CELLS[side.stored]
            out.line(f"{cell}* const {side.name} = ({cell}*)({place});")
        if plan.unit == "mma":
            warp = "tid / 32" if layout.warps_used * 32 == layout.threads else f"tid / 32 % {layout.warps_used}"
            out.line(f"const int warp_row = {warp} % {layout.warps_down} * 16;")
            out.line(f"const int warp_column = {warp} / {layout.warps_down} * {layout.warp_columns};")
            out.line("const int lane = tid % 32;")
            return
        panels = self.right.panels
        if not self.left.operand.held:
            pointer = "left"
            if layout.warps_down > 4:
                pointer += f" + {self.context.warp()} % {layout.warps_down} / 4 * {64 * self.left.panels.width}"
            out.line(f"const unsigned long long left_at = {warpgroups.descriptor(self.left.panels, pointer)};")
        across = layout.warp_columns * panels.width
        if not self.dot.transposed:
            across = layout.warp_columns // panels.width * panels.lines * panels.width
        pointer = "right"
        if layout.warps_across > 1:
            pointer += f" + {self.context.warp()} / {layout.warps_down} * {across}"
        out.line(f"const unsigned long long right_at = {warpgroups.descriptor(panels, pointer)};")

    def staged(self) -> None:
        """What was stored for tensor cores can be read by them after the next wait."""
        if self.plan.unit == "wgmma":
            self.context.out.line("ph_others_see();")

    def wait(self) -> None:
        """The sums are there, unless the loop says when."""
        if self.plan.unit == "wgmma" and self.dot not in self.context.awaited:
            self.context.out.line("ph_group_wait<0>();")

    def step(self) -> None:
        """Multiply the step of K that begins at `k0`. Warpgroups are only told to: `wait` until they have."""
        if self.plan.unit == "mma":
            self._by_warps()
        else:
            self._by_groups()

    def _by_warps(self) -> None:
        out, layout, plan = self.context.out, self.plan.layout, self.plan
        pieces_down, pieces_across = layout.pieces_down, layout.column_steps
        with out.rows(f"for (int k = 0; k < {plan.step}; k += 16)"):
            out.line(f"unsigned a[{pieces_down}][4], b[{pieces_across}][2];")
            with out.rows(f"for (int i = 0; i < {pieces_down}; ++i)"):
                if plan.left.held:
                    self._packed("a[i]")
                else:
                    row = f"warp_row + i * {layout.piece_stride} + lane % 16"
                    out.line(f"ph_fragment_4(a[i], {self.left.cell_at(row, 'k + lane / 16 * 8')});")
            pairs = pieces_across // 2
            if pairs:
                with out.rows(f"for (int j = 0; j < {2 * pairs}; j += 2)"):
                    out.line(self._right("j", 4))
            if pieces_across % 2:
                out.line(self._right(str(2 * pairs), 2))
            down, across = f"for (int i = 0; i < {pieces_down}; ++i)", f"for (int j = 0; j < {pieces_across}; ++j)"
            with out.rows(down), out.rows(across):
                columns, sums = layout.column_registers, self.sums
                upper, lower = f"{sums} + i * {2 * columns} + j * 2", f"{sums} + (i * 2 + 1) * {columns} + j * 2"
                out.line(f"ph_multiply_{plan.dtype}({upper}, {lower}, a[i], b[j]);")

    def _right(self, j: str, count: int) -> str:
        """The load of the right operand's fragments from the `j`-th on: one, or two with one instruction."""
        beside = " + lane / 16 * 8" if count == 4 else ""
        if self.dot.transposed:
            at = self.right.cell_at(f"warp_column + {j} * 8 + lane % 8{beside}", "k + lane / 8 % 2 * 8")
            return f"ph_fragment_{count}(b[{j}], {at});"
        at = self.right.cell_at("k + lane % 16", f"warp_column + {j} * 8{beside}")
        return f"ph_fragment_{count}_turned(b[{j}], {at});"

    def _by_groups(self) -> None:
        out, layout, plan = self.context.out, self.plan.layout, self.plan
        columns, sums = layout.column_registers, self.sums
        call = warpgroups.name_of(plan.dtype, layout.warp_columns, plan.left.held, not self.dot.transposed)
        upper, lower = f"{sums} + i * {2 * columns}", f"{sums} + (i * 2 + 1) * {columns}"
        right = f"right_at + {_along_k(self.right.panels, self.dot.transposed)}"
        piece = layout.piece_stride * self.left.panels.row_bytes // 16
        left = f"left_at + {_along_k(self.left.panels, True)} + i * {piece}"
        steps = f"for (int k = 0; k < {plan.step}; k += 16)", f"for (int i = 0; i < {layout.pieces_down}; ++i)"
        if plan.left.held:
            if plan.packed_first and not self.is_held:
                self.hold()
            left = f"a[k / 16 * {layout.pieces_down} + i]" if self.is_held else "a"
        out.line("ph_group_begin();")
        with out.rows(steps[0]), out.rows(steps[1]):
            if left == "a":
                out.line("unsigned a[4];")
                self._packed("a")
            out.line(f"{call}({upper}, {lower}, {left}, {right});")
        out.line("ph_group_end();")

    def hold(self) -> None:
        """A left operand from registers, rounded and packed: all of it is there before products are ordered that work
        beside each other, which registers that still change would keep from it."""
        out, plan, down = self.context.out, self.plan, self.plan.layout.pieces_down
        if not plan.left.held:
            return
        self.is_held = True
        out.line(f"unsigned a[{plan.step // 16 * down}][4];")
        with (
            out.rows(f"for (int k = 0; k < {plan.step}; k += 16)"),
            out.rows(f"for (int i = 0; i < {down}; ++i)"),
        ):
            self._packed(f"a[k / 16 * {down} + i]")

    def _packed(self, target: str) -> None:
        """Sixteen columns of the warp's own rows of the left operand, two in each register."""
        variable, out = self.plan.left.variable, self.context.out
        assert variable is not None
        name, columns = self.context.name(variable), self.context.layout(variable).column_registers
        for n, (row, column) in enumerate(((0, 0), (1, 0), (0, 2), (1, 2))):
            pair = [
                _rounded(
                    self.left.operand,
                    plan_dtype=self.plan.dtype,
                    text=f"{name}[(i * 2 + {row}) * {columns} + k / 4 + {at}]",
                )
                for at in (column, column + 1)
            ]
            out.line(f"{target}[{n}] = ph_pack_{self.plan.dtype}({pair[0]}, {pair[1]});")


def _along_k(panels: Panels, k_along: bool) -> str:
    """Sixteens of bytes from an operand's first cell to its `k`-th: along its rows, or down them."""
    if not k_along:
        return f"k * {panels.row_bytes // 16}"
    inside = f"k % {panels.width} / 8"
    return inside if panels.across == panels.width else f"k / {panels.width} * {panels.panel_bytes // 16} + {inside}"


def _rounded(operand: Operand, plan_dtype: str, text: str) -> str:
    """A held value through the conversions that the user wrote; packing rounds to what is multiplied."""
    chain: list[str] = []
    inner = operand.expression
    while isinstance(inner, ir.Convert):
        assert isinstance(inner.type, ir.TileT)
        chain.insert(0, inner.type.dtype)
        inner = inner.operand
    if chain and chain[-1] == plan_dtype:
        chain.pop()
    dtype = operand.dtype
    for target in chain:
        text = spelling.convert(text, dtype, target)
        dtype = target
    return text

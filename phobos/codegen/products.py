"""Products on the ordinary units: operands staged in shared memory a step of K at a time, multiplied from there.

In a pipelined loop the steps of later rounds are on their way into other buffers while this one is multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from phobos.codegen import spelling
from phobos.codegen.context import Context
from phobos.codegen.elementwise import Loop
from phobos.codegen.staging import Even, Side, stage
from phobos.language.scalars import scalar
from phobos.lowering import ops
from phobos.lowering.products import Product
from phobos.semantics import ir

TOGETHER = 2  # copies of a step by a thread; the compiler puts idle reads before each of such bunches


def product(context: Context, dot: ops.Dot) -> None:
    """A product by itself: its operands are fetched when they are needed."""
    plan, out = context.lowered.products[dot], context.out
    with summing(context, dot, plan) as sums:
        multiply = _Multiply(context, dot, plan, sums)
        for side in multiply.sides:
            side.open()
        multiply.places("")
        length = str(plan.length) if plan.length is not None else multiply.sides[0].length
        if not multiply.staged:
            with out.block(f"for (int k = 0; k < {length}; ++k)"):
                multiply.one("k", "k")
            return
        with out.block(f"for (long long k0 = 0; k0 < {length}; k0 += {plan.step})"):
            if plan.length is None or plan.length > plan.step:
                out.line("if (k0 > 0) __syncthreads();  // the step before has been read")
            for side in multiply.staged:
                side.stage(length)
            out.line("__syncthreads();")
            multiply.step(length)


@contextmanager
def summing(context: Context, dot: ops.Dot, plan: Product) -> Iterator[str]:
    """Around what multiplies: gives the name of the sums, which begin at nought or at what the result holds, and end in
    it. They are the result's registers where these are of the sums' type."""
    assert isinstance(dot.result.type, ir.TileT)
    out, registers = context.out, plan.layout.registers
    direct = context.place(dot.result) is None and dot.result.type.dtype == plan.total
    sums = context.name(dot.result) if direct else "sums"
    with out.block():
        if not direct:
            out.line(f"{spelling.VALUES[plan.total]} sums[{registers}];")
        if not (direct and dot.accumulate):
            with out.rows(f"for (int n = 0; n < {registers}; ++n)"):
                out.line(f"{sums}[n] = {spelling.zero(plan.total)};")
        yield sums
        if not direct:
            _keep_sums(context, dot, plan)


def pipelined(
    context: Context, loop: ir.For, dot: ops.Dot, name: str, lo: str, hi: str, step: str, define: Callable[[], None]
) -> None:
    """A loop of nothing but this product; `define` spells the views and scalars of a round.

    Round r is multiplied from buffer r modulo the number of stages, while the rounds after it are fetched.
    """
    plan = context.lowered.products[dot]
    out, stages = context.out, plan.stages
    multiply = _Multiply(context, dot, plan, context.name(dot.result))
    size = plan.staged_bytes
    out.line("__syncthreads();  // the buffers may have been in use")
    views = {one.variable: one.access for one in loop.body.statements if isinstance(one, ir.DefineView)}
    left, right = (side.spread(views) for side in multiply.sides) if plan.turned else (None, None)
    if left is not None and right is not None:
        with out.block():
            multiply.overlapped((left, right), (name, lo, hi, step), define)
        return
    with out.block():
        with out.lambda_(f"auto fetch = [&](const long long {name}, const int slot)"):
            out.line("const long long k0 = 0;")
            multiply.places(f" + slot * {size}")
            define()
            for side in multiply.sides:
                side.open()
            stage(multiply.sides, str(plan.length), asynchronous=True)
            out.line("ph_copies_end();")
        for ahead in range(stages - 1):
            at = _rounds_on(lo, ahead, step)
            out.line(f"if ({at} < {hi}) fetch({at}, {ahead}); else ph_copies_end();")
        out.line("int slot = 0;")
        with out.block(f"for (long long {name} = {lo}; {name} < {hi}; {name} += {step})"):
            out.line(f"ph_copies_wait<{stages - 2}>();")
            out.line("__syncthreads();  // this round's step is there, and the one before has been read")
            out.line(f"const long long ahead = {_rounds_on(name, stages - 1, step)};")
            out.line(f"if (ahead < {hi}) fetch(ahead, slot == 0 ? {stages - 1} : slot - 1); else ph_copies_end();")
            multiply.places(f" + slot * {size}")
            out.line("const long long k0 = 0;")
            multiply.step(str(plan.length))
            out.line(f"slot = slot == {stages - 1} ? 0 : slot + 1;")
        out.line("ph_copies_wait<0>();")


class _Multiply:
    """One product: its sides, and the spelling of a step of K from shared memory into `sums`."""

    def __init__(self, context: Context, dot: ops.Dot, plan: Product, sums: str) -> None:
        self.context, self.dot, self.plan, self.sums = context, dot, plan, sums
        layout = plan.layout
        self.left = Side(context, plan, plan.left, "left", layout.rows, True, plan.left_pitch)
        self.right = Side(context, plan, plan.right, "right", layout.columns, dot.transposed, plan.right_pitch)
        self.loop = Loop(context, layout, (layout.rows, layout.columns))

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right

    @property
    def staged(self) -> list[Side]:
        return [side for side in self.sides if side.operand.staged]

    def places(self, shift: str) -> None:
        """Name the buffers of the staged sides."""
        if not self.staged:
            return
        base = self.context.lowered.shared.places[self.context.lowered.scratches[self.dot]].offset
        for side, offset in zip(self.sides, (0, self.plan.left_bytes), strict=True):
            if side.operand.staged:
                cell = spelling.CELLS[side.stored]
                self.context.out.line(
                    f"{cell}* const {side.name} = ({cell}*)({spelling.plus('shared', base + offset)}{shift});"
                )

    def step(self, length: str) -> None:
        """Multiply the step of K that begins at `k0`."""
        plan, out = self.plan, self.context.out
        if plan.turned:
            self._turned()
            return
        whole = len(self.staged) == 2 or (plan.length is not None and plan.length % plan.step == 0)
        if whole and plan.step % 4 == 0 and self.left.operand.staged and scalar(plan.total).bytes <= 8:
            self._fours()
            return
        if whole:
            out.line("#pragma unroll")
            head = f"for (int k = 0; k < {plan.step}; ++k)"
        else:
            head = f"for (int k = 0; k < {plan.step} && k0 + k < {length}; ++k)"
        with out.block(head):
            self.one("k", "(int)k0 + k")

    def one(self, k: str, deep: str) -> None:
        """One k: a column of the left side times a row of the right one."""
        out, layout = self.context.out, self.plan.layout
        number = spelling.VALUES[self.plan.total]
        out.line(f"{number} a[{layout.row_registers}];")
        with out.rows(f"for (int i = 0; i < {layout.row_registers}; ++i)"):
            out.line(f"a[i] = {self.left.cell(self._row(), k, deep)};")
        self._columns(k, deep, "a[i]")

    def _fours(self) -> None:
        """Four k at a time of the left side, which lies with K along its rows."""
        out, layout = self.context.out, self.plan.layout
        number = spelling.VALUES[self.plan.total]
        width = min(4, 16 // scalar(self.plan.total).bytes)
        with out.rows(f"for (int k = 0; k < {self.plan.step}; k += 4)"):
            out.line(f"{number} a[{layout.row_registers}][4];")
            with out.rows(f"for (int i = 0; i < {layout.row_registers}; ++i)"):
                for q in range(0, 4, width):
                    at = spelling.plus("left", self.left.place(self._row(), spelling.plus("k", q)))
                    out.line(f"ph_load<{width}>({spelling.plus('a[i]', q)}, {at});")
            with out.rows("for (int q = 0; q < 4; ++q)"):
                self._columns("(k + q)", "(int)k0 + k + q", "a[i][q]")

    # Of an even layout: a column of the left side and a row of the right one, in groups of four.

    def _turned(self) -> None:
        out = self.context.out
        for side, first in ((self.left, self.loop.row("0")), (self.right, self.loop.column("0"))):
            out.line(f"const {spelling.CELLS[side.stored]}* const {side.name}_at = {side.name} + {first};")
        with out.rows(f"for (int k = 0; k < {self.plan.step}; ++k)"):
            number, layout = spelling.VALUES[self.plan.total], self.plan.layout
            out.line(f"{number} a[{layout.row_registers}], b[{layout.column_registers}];")
            self._fetch_registers("k", "a", "b")
            self._add("a", "b")

    def overlapped(self, evens: tuple[Even, Even], head: tuple[str, str, str, str], define: Callable[[], None]) -> None:
        """The pipelined loop: while one k is multiplied the registers of the next are read, of the next step too.

        A step is fetched in pieces, a few copies at a time: all at once they stand in each other's way, and every warp
        of the block waits for them at the same time. There is no branch in a round.
        """
        (name, lo, hi, step), plan, layout, out = head, self.plan, self.plan.layout, self.context.out
        stages, number, size = plan.stages, spelling.VALUES[self.plan.total], self.plan.staged_bytes
        for side in self.sides:
            cell = spelling.CELLS[side.stored]
            out.line(f"const {cell}* {side.name}_from;  // this thread's copies: from, to, and of how many rows")
            out.line(f"{cell}* {side.name}_to;")
            out.line(f"int {side.name}_rows;")
        pieces = [(side, even, i) for side, even in zip(self.sides, evens, strict=True) for i in range(even.count)]
        count = min(-(-len(pieces) // TOGETHER), plan.step - 1)
        bunches = [
            (n * (plan.step - 1) // count, pieces[n * len(pieces) // count : (n + 1) * len(pieces) // count])
            for n in range(count)
        ]
        with out.lambda_("auto aim = [&](const long long given, const int slot)"):
            out.line(f"const bool more = given < {hi};")
            out.line(f"const long long {name} = more ? given : {lo}, k0 = 0;")
            self.places(f" + slot * {size}")
            define()
            for side, even in zip(self.sides, evens, strict=True):
                side.open()
                side.aim(even, "more")
        for ahead in range(stages - 1):
            out.line(f"aim({_rounds_on(lo, ahead, step)}, {ahead});")
            for side, even, i in pieces:
                side.piece(even, i)
            out.line("ph_copies_end();")
        out.line(f"{number} a[2][{layout.row_registers}], b[2][{layout.column_registers}];")
        out.line(f"int slot = 0, next = {stages - 1};")
        self._from("")
        out.line(f"ph_copies_wait<{stages - 2}>();")
        out.line("__syncthreads();  // the first step is there")
        self._fetch_registers("0", "a[0]", "b[0]")
        out.line(f"aim({_rounds_on(lo, stages - 1, step)}, next);")
        rounds = out.block(f"for (long long {name} = {lo}; {name} < {hi}; {name} += {step})")
        with rounds, out.rows(f"for (int k = 0; k < {plan.step}; ++k)"):
            last = f"if (k + 1 == {plan.step})"
            with out.block(last):
                out.line("ph_copies_end();")
                out.line(f"ph_copies_wait<{stages - 2}>();")
                out.line("__syncthreads();  // the next step is there, and this one has been read")
                out.line("next = slot;")
                out.line(f"slot = slot == {stages - 1} ? 0 : slot + 1;")
                self._from(f" + slot * {size}", again=True)
            self._fetch_registers(f"((k + 1) % {plan.step})", "a[(k + 1) % 2]", "b[(k + 1) % 2]")
            for at, some in bunches:
                with out.block(f"if (k == {at})"):
                    for side, even, i in some:
                        side.piece(even, i)
            out.line(f"{last} aim({_rounds_on(name, stages, step)}, next);")
            self._add("a[k % 2]", "b[k % 2]")
        out.line("ph_copies_wait<0>();")

    def _from(self, shift: str, again: bool = False) -> None:
        """Where this thread's registers of the first k of a step come from: from there on they lie at numbers."""
        base = self.context.lowered.shared.places[self.context.lowered.scratches[self.dot]].offset
        parts = (self.left, 0, self.loop.row("0")), (self.right, self.plan.left_bytes, self.loop.column("0"))
        for side, offset, first in parts:
            cell = f"const {spelling.CELLS[side.stored]}*"
            declared = "" if again else f"{cell} "
            step = f"({cell})({spelling.plus('shared', base + offset)}{shift})"
            self.context.out.line(f"{declared}{side.name}_at = {spelling.plus(step, first)};")

    def _fetch_registers(self, k: str, a: str, b: str) -> None:
        out, layout = self.context.out, self.plan.layout
        width = min(4, 16 // scalar(self.plan.total).bytes)
        for i in range(0, layout.row_registers, width):
            at = self.left.place(str(i // layout.row_group * layout.row_stride + i % layout.row_group), k)
            out.line(f"ph_load<{width}>({spelling.plus(a, i)}, {spelling.plus('left_at', at)});")
        for j in range(0, layout.column_registers, width):
            at = self.right.place(str(j // layout.vector * layout.column_stride + j % layout.vector), k)
            out.line(f"ph_load<{width}>({spelling.plus(b, j)}, {spelling.plus('right_at', at)});")

    def _add(self, a: str, b: str) -> None:
        """A column of the left side times a row of the right one, onto the sums.

        Down one column and up the next: each multiply-add reads one register that the one before has read, and the
        compiler finds the other two in different banks of the register file more often than along rows.
        """
        out, rows, columns = self.context.out, self.plan.layout.row_registers, self.plan.layout.column_registers
        with out.rows(f"for (int j = 0; j < {columns}; ++j)"), out.rows(f"for (int n = 0; n < {rows}; ++n)"):
            out.line(f"const int i = j % 2 ? {rows - 1} - n : n;")
            out.line(self._onto(f"{self.sums}[i * {columns} + j]", f"{a}[i]", f"{b}[j]"))

    def _row(self) -> str:
        layout = self.plan.layout
        if layout.rows == 1:
            return "0"
        row = self.loop.row("i")
        return row if layout.rows_exact else f"min({row}, {layout.rows - 1})"

    def _columns(self, k: str, deep: str, left: str) -> None:
        """`left` times a row of the right side, onto the sums."""
        out, layout = self.context.out, self.plan.layout
        number, columns = spelling.VALUES[self.plan.total], layout.column_registers
        right = self.right
        out.line(f"{number} b[{columns}];")
        vector = 1 if layout.columns == 1 else layout.vector
        if layout.columns == 1:
            out.line(f"b[0] = {right.cell('0', k, deep)};")
        else:
            with out.each("j", layout.column_steps) as j:
                column = self.loop.column(j)
                if not layout.columns_exact:
                    column = f"min({column}, {layout.columns - vector})"
                width = min(vector, 16 // scalar(self.plan.total).bytes)
                first = spelling.times(j, vector)
                if right.operand.staged and width > 1 and right.pitch % width == 0:
                    for v in range(0, vector, width):
                        at = spelling.plus("right", right.place(spelling.plus(column, v), k))
                        out.line(f"ph_load<{width}>({spelling.plus('b', first, v)}, {at});")
                else:
                    with out.each("v", vector) as v_:
                        there = spelling.plus(first, v_)
                        out.line(f"b[{there}] = {right.cell(spelling.plus(column, v_), k, deep)};")
        down, across = f"for (int i = 0; i < {layout.row_registers}; ++i)", f"for (int j = 0; j < {columns}; ++j)"
        with out.rows(down), out.rows(across):
            out.line(self._onto(f"{self.sums}[i * {columns} + j]", left, "b[j]"))

    def _onto(self, total: str, left: str, right: str) -> str:
        return f"{total} = {spelling.multiply_add(left, right, total, self.plan.total)};"


def _rounds_on(start: str, count: int, step: str) -> str:
    """The loop variable so many rounds after `start`; where all is known when compiled, its number."""
    numbers = [text.removesuffix("LL") for text in (start, step)]
    if all(number.isdecimal() for number in numbers):
        return spelling.index(int(numbers[0]) + count * int(numbers[1]))
    return f"{start} + {count} * {step}" if count else start


def _keep_sums(context: Context, dot: ops.Dot, plan: Product) -> None:
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

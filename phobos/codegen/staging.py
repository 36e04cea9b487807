"""The operands of a product: copied to shared memory step by step, or read where they are.

Staged for the ordinary units, a right operand of `dot` lies as it does in its tensor; one of `dot_t` is turned, so
that neighbouring threads read neighbouring cells. So is a left operand where each thread has whole groups of rows.
For tensor cores everything lies as in its tensor, in panels (`tensorcores.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from phobos.codegen import spelling
from phobos.codegen.context import Context, View
from phobos.codegen.elementwise import Loop, whole_view
from phobos.codegen.expressions import dtype_of
from phobos.codegen.leaves import Cells, view_of
from phobos.language.scalars import scalar
from phobos.lowering.layout import Layout
from phobos.lowering.products import TURN, Operand, Product
from phobos.lowering.vectors import elements_per_access
from phobos.semantics import ir
from phobos.value import value

ASYNCHRONOUS_BYTES = (4, 8, 16)  # that one copy past the registers may have
BUNCH = 32  # loads of a thread that are under way together: with eight or sixteen an H200 gained nothing


@value
class Even:
    """A thread's copies of a step: `count` of them, `width` cells each, `rows` rows apart; the first is of row `first`,
    at `along`. They go to `place`, and lie `apart` cells from each other there (0: not evenly)."""

    width: int
    rows: int
    count: int
    first: str
    along: str
    place: str
    apart: int


class Side:
    """One operand: `lines` rows (left) or columns (right) by K. `k_last`: K is its last axis."""

    def __init__(
        self, context: Context, plan: Product, operand: Operand, name: str, lines: int, k_last: bool, pitch: int
    ) -> None:
        self.context, self.plan, self.operand, self.name = context, plan, operand, name
        self.lines, self.k_last, self.pitch = lines, k_last, pitch
        self.cells: Cells | None = None
        self.length = "0"

    @property
    def turned(self) -> bool:
        """It lies in shared memory with K down the columns although K is its last axis."""
        return self.plan.unit == "fma" and self.k_last and (self.name == "right" or self.plan.turned)

    def open(self) -> None:
        """Put the starts of a staged operand into variables now."""
        if not self.operand.staged:
            return
        inner = self.operand.expression
        while isinstance(inner, ir.Convert):
            inner = inner.operand
        prefix = self.context.names.fresh(self.name)
        if isinstance(inner, ir.Load):
            view = view_of(self.context, inner.access, prefix)
        else:
            assert isinstance(inner, ir.VariableRef)
            view = self.context.views.get(inner.variable) or whole_view(inner.variable)
        self.cells = Cells(self.context, view, prefix)
        self.length = view.lengths[-1 if self.k_last else -2]

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

    def lies(self, down: str, along: str) -> str:
        """Where the staged cell of this row and column, as in the tensor, lies."""
        return f"{down} * {self.pitch} + {along}"

    def place(self, line: str, k: str) -> str:
        """Where the staged cell at (line, k) lies."""
        row, column = (line, k) if self.k_last and not self.turned else (k, line)
        return spelling.plus(spelling.times(spelling.factor(row), self.pitch), column)

    def cell(self, line: str, k: str, deep: str) -> str:
        """The value at (line, k): `k` within the staged step, `deep` within the whole of K."""
        if self.operand.staged:
            return f"{self.name}[{self.place(line, k)}]"
        variable = self.operand.variable
        assert variable is not None
        name, place = self.context.name(variable), self.context.place(variable)
        if place is None:
            return self.converted(f"{name}[0]")
        row, column = (line, deep) if self.k_last else (deep, line)
        return self.converted(f"{name}[{spelling.plus(spelling.times(spelling.factor(row), place.pitch), column)}]")

    @property
    def stored(self) -> str:
        """The type of a staged cell, as an element type."""
        return self.plan.total if self.plan.unit == "fma" else self.plan.dtype

    def stage(self, length: str, asynchronous: bool = False) -> None:
        """Copy one step of K from `k0` on; zero where K or a tensor ends."""
        stage((self,), length, asynchronous)

    @property
    def _ragged(self) -> bool:
        return self.plan.length is None or self.plan.length % self.plan.step != 0

    def whole(self, length: str) -> list[str]:
        """Conditions under which the step from `k0` on lies inside."""
        assert self.cells is not None
        within = [f"k0 + {self.plan.step} <= {length}"] if self._ragged else []
        return [*self.cells.whole(), *within]

    def copy(self, length: str, masked: bool, asynchronous: bool) -> None:
        """The copies of a step that lies inside, or of one that may not (`masked`)."""
        assert self.cells is not None
        cells, (across, down) = self.cells, self._extents
        width, inside = _width(self.context, cells, across), ""
        if masked and self.whole(length):
            k = "along" if self.k_last else "down"
            at = _at(cells, self.k_last)
            found = [cells.inside(at, range(len(at))), f"k0 + {k} < {length}" if self._ragged else ""]
            inside = " && ".join(filter(None, found))
            if not cells.unbroken(width) or (self._ragged and self.k_last):
                width = 1
        self._copy(inside, width, across, down, asynchronous)

    def _copy(self, inside: str, width: int, across: int, down: int, asynchronous: bool) -> None:
        """All threads copy `width` neighbours at a time; `inside` is the condition for a cell that may lie outside."""
        assert self.cells is not None
        out, cells, threads = self.context.out, self.cells, self.context.program.launch.threads
        chunks = across // width * down
        rounds = -(-chunks // threads)
        cell, stored = spelling.CELLS[cells.dtype], spelling.CELLS[self.stored]
        direct = cell == stored and not isinstance(self.operand.expression, ir.Convert)
        if asynchronous and direct and self._ordered(inside, width, across, down):
            return
        same = direct and not self.turned
        out.line("#pragma unroll" if not inside or width > 1 else f"#pragma unroll {min(rounds, 2)}")
        guard = nullcontext() if chunks % threads == 0 else out.block(f"if (e < {chunks})")
        with out.block(f"for (int e = tid; e < {rounds * threads}; e += {threads})"), guard:
            along = f"e % {across // width}" + (f" * {width}" if width > 1 else "")
            out.line(f"const int down = e / {across // width}, along = {along};")
            here = f"{cells.base} + {cells.offset(_at(cells, self.k_last))}"
            if width > 1:
                cells.note_wide(width)
            if asynchronous and same and _is_asynchronous(cells, width):
                there = f"{self.name} + {self.lies('down', 'along')}"
                out.line(f"ph_copy_async<{width}>({there}, {here}, {inside or 'true'});")
                return
            if width > 1:
                out.line(f"{cell} x[{width}]{' = {}' if inside else ''};")
                out.line(f"{f'if ({inside}) ' if inside else ''}ph_load<{width}>(x, {here});")
            else:
                value = f"*({here})"
                empty = spelling.empty_cell(cells.dtype)
                out.line(f"const {cell} x[1] = {{{f'{inside} ? {value} : {empty}' if inside else value}}};")
            self._keep(width, same)

    def _ordered(self, inside: str, width: int, across: int, down: int) -> bool:
        """The copies of a step past the registers, where they lie evenly."""
        assert self.cells is not None
        out, cells = self.context.out, self.cells
        even = self._even(cells, width, across, down)
        if even is None:
            return False
        cell, asynchronous = spelling.CELLS[cells.dtype], _is_asynchronous(cells, even.width)
        if even.width > 1:
            cells.note_wide(even.width)
        with out.block():
            out.line(f"const int first = {even.first}, along = {even.along};")
            here = cells.offset(tuple(at.replace("down", "first") for at in _at(cells, self.k_last)))
            out.line(f"const {cell}* const from = {cells.base} + {here};")
            there = f"{self.name} + {even.place}"
            if even.apart:
                out.line(f"{cell}* const to = {there.replace('down', 'first')};")
                there = f"to + {'i' if asynchronous else '(i + v)'} * {even.apart}"
            if not asynchronous:
                self._in_bunches(even, inside, there)
                return True
            with out.rows(f"for (int i = 0; i < {even.count}; ++i)"):
                out.line(f"const int down = first + i * {even.rows};")
                out.line(
                    f"ph_copy_async<{even.width}>({there}, from + (long long)(i * {even.rows}) * "
                    f"{cells.strides[-2]}, {inside or 'true'});"
                )
        return True

    def _in_bunches(self, even: Even, inside: str, there: str) -> None:
        """Through registers, what is too small to be copied past them: several loads under way, then their stores."""
        assert self.cells is not None
        out, cells = self.context.out, self.cells
        bunch = math.gcd(even.count, BUNCH)
        cell, down = spelling.CELLS[cells.dtype], f"const int down = first + (i + v) * {even.rows};"
        out.line(f"const {cell}* next = from;")
        with out.rows(f"for (int i = 0; i < {even.count}; i += {bunch})", 1):
            out.line(f"{cell} x[{bunch}];")
            with out.rows(f"for (int v = 0; v < {bunch}; ++v, next += {spelling.times(cells.strides[-2], even.rows)})"):
                if inside:
                    out.line(down)
                out.line(f"x[v] = {f'{inside} ? *next : {spelling.empty_cell(cells.dtype)}' if inside else '*next'};")
            with out.rows(f"for (int v = 0; v < {bunch}; ++v)"):
                if not even.apart:
                    out.line(down)
                out.line(f"*({there}) = x[v];")

    def _even(self, cells: Cells, width: int, across: int, down: int) -> Even | None:
        """How a step is copied where each thread's copies lie a fixed number of rows apart.

        A turned operand is copied cell by cell: a warp takes eight of K by four lines, which lie in different banks.
        """
        threads = self.context.program.launch.threads
        if self.turned:
            width, groups = 1, across // TURN
            rows = max(threads // across, 1)
            if across % TURN or (threads // 32) % groups or down % rows:
                return None
            first = f"tid / 32 / {groups} * {32 // TURN} + tid % 32 / {TURN}"
            along = f"tid / 32 % {groups} * {TURN} + tid % {TURN}"
            place, apart = f"along * {self.pitch} + down", rows
        else:
            lanes = across // width
            rows = max(threads // lanes, 1)
            if threads % lanes or down % rows:
                return None
            first = f"tid / {lanes}"
            along = f"tid % {lanes}" + (f" * {width}" if width > 1 else "")
            place = self.lies("down", "along")
            apart = rows * self.pitch  # none of panels
        if "1" in map(str, cells.shape[-2:]):
            return None
        if not _is_asynchronous(cells, width) and (self.turned or width > 1):
            return None
        return Even(width, rows, down // rows, first, along, place, apart)

    @property
    def _extents(self) -> tuple[int, int]:
        """Cells along the operand's rows of a step, and down them."""
        step = self.plan.step
        return (step, self.lines) if self.k_last else (self.lines, step)

    def spread(self, views: Mapping[ir.Variable, ir.Access]) -> Even | None:
        """How the step is copied in pieces, each with a mask that one number decides; None where that cannot be.

        Before it is opened; `views` are those of the loop that fetches it."""
        inner = self.operand.expression
        if isinstance(inner, ir.Convert) or self._ragged:
            return None
        assert isinstance(inner, (ir.Load, ir.VariableRef))
        access = inner.access if isinstance(inner, ir.Load) else views[inner.variable]
        nowhere = ("0",) * len(access.subs)
        cells, (across, down) = Cells(self.context, View(access, nowhere, nowhere), ""), self._extents
        if spelling.CELLS[cells.dtype] != spelling.CELLS[self.stored]:
            return None
        width = _width(self.context, cells, across)
        negative = any(needed and cells.may_be_negative(axis) for axis, needed in enumerate(cells.needed))
        even = None if negative else self._even(cells, width if cells.unbroken(width) else 1, across, down)
        return even if even is not None and _is_asynchronous(cells, even.width) else None

    def aim(self, even: Even, more: str) -> None:
        """Set where this thread's copies of the step come from and go to, and how many rows of it are inside.

        `more`: the condition under which there is such a step at all."""
        assert self.cells is not None
        out, cells, (_, down) = self.context.out, self.cells, self._extents
        name = self.name
        if even.width > 1:
            cells.note_wide(even.width)
        with out.block():
            out.line(f"const int first = {even.first}, along = {even.along};")
            at = tuple(one.replace("down", "first") for one in _at(cells, self.k_last))
            out.line(f"{name}_from = {cells.base} + {cells.offset(at)};")
            out.line(f"{name}_to = {name} + {even.place.replace('down', 'first')};")
            axes = range(len(at))
            others = [cells.inside(at, range(axis, axis + 1)) for axis in axes if axis != len(at) - 2]
            condition = " && ".join(filter(None, [more, *others]))
            rows = str(down)
            if cells.needed[-2]:
                rest = f"{cells.extents[-2]} - ({cells.firsts[-2]} + {at[-2]})"
                out.line(f"const long long rest = {rest};")
                rows = f"(rest < {down} ? (int)rest : {down})"
            out.line(f"{name}_rows = {condition} ? {rows} : 0;")

    def piece(self, even: Even, i: int) -> None:
        """The `i`-th copy of this thread, as aimed."""
        assert self.cells is not None
        there, here = f"{self.name}_to", f"{self.name}_from"
        if i:
            there += f" + {i * even.apart}"
            here += f" + {i * even.rows}LL * {self.cells.strides[-2]}"
        self.context.out.line(f"ph_copy_async<{even.width}>({there}, {here}, {i * even.rows} < {self.name}_rows);")

    def _keep(self, width: int, same: bool) -> None:
        """`x` to its place, in one access where it lies there as it comes."""
        out, cell = self.context.out, spelling.CELLS[self.stored]
        values = [f"x[{n}]" if same else spelling.to_cell(self.converted(f"x[{n}]"), self.stored) for n in range(width)]
        if self.turned:
            for n, value in enumerate(values):
                row = spelling.factor(spelling.plus("along", n))
                out.line(f"{self.name}[{row} * {self.pitch} + down] = {value};")
            return
        kept = "x"
        if not same:
            kept = "y"
            out.line(f"const {cell} y[{width}] = {{{', '.join(values)}}};")
        piece = min(width, 16 // scalar(self.stored).bytes)
        place = f"{self.name} + {self.lies('down', 'along')}"
        if piece == 1:
            for n in range(width):
                out.line(f"{self.name}[{spelling.plus(self.lies('down', 'along'), n)}] = {kept}[{n}];")
            return
        for n in range(0, width, piece):
            out.line(f"ph_store<{piece}>({spelling.plus(place, n)}, {spelling.plus(kept, n)});")


def stage(sides: Sequence[Side], length: str, asynchronous: bool = False) -> None:
    """Copy one step of K from `k0` on of all these: without masks where all lie inside, which is one question."""
    context = sides[0].context
    threads = context.program.launch.threads
    conditions = dict.fromkeys(condition for side in sides for condition in side.whole(length))

    def spell(masked: bool) -> None:
        for side in sides:
            side.copy(length, masked, asynchronous)

    Loop(context, Layout(1, 1, threads, threads, 1, 1), (1, 1)).twice(" && ".join(conditions), spell)


def _is_asynchronous(cells: Cells, width: int) -> bool:
    """Whether so many cells can be copied past the registers."""
    return width * scalar(cells.dtype).bytes in ASYNCHRONOUS_BYTES


def _at(cells: Cells, k_last: bool) -> tuple[str, ...]:
    """Where the cell at (down, along) of the step lies in the access."""
    at = ("down", "k0 + along") if k_last else ("k0 + down", "along")
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

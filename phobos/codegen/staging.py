"""The operands of a product: copied to shared memory step by step, or read where they are.

Staged for the ordinary units, a right operand of `dot` lies as it does in its tensor; one of `dot_t` is turned, so
that neighbouring threads read neighbouring cells. So is a left operand where each thread has whole groups of rows.
For tensor cores everything lies as in its tensor, in panels (`tensorcores.py`).
"""

from __future__ import annotations

from contextlib import nullcontext

from phobos.codegen import spelling
from phobos.codegen.context import Context
from phobos.codegen.elementwise import Loop, whole_view
from phobos.codegen.expressions import dtype_of
from phobos.codegen.leaves import Cells, view_of
from phobos.language.scalars import scalar
from phobos.lowering.layout import Layout
from phobos.lowering.products import TURN, Operand, Product
from phobos.lowering.vectors import elements_per_access
from phobos.semantics import ir


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
        if self.k_last and not self.turned:
            return f"({line}) * {self.pitch} + {k}"
        return f"({k}) * {self.pitch} + {line}"

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
        return self.converted(f"{name}[({row}) * {place.pitch} + {column}]")

    @property
    def stored(self) -> str:
        """The type of a staged cell, as an element type."""
        return self.plan.total if self.plan.unit == "fma" else self.plan.dtype

    def stage(self, length: str, asynchronous: bool = False) -> None:
        """Copy one step of K from `k0` on; zero where K or a tensor ends."""
        assert self.cells is not None
        plan, cells = self.plan, self.cells
        threads, step = self.context.program.launch.threads, plan.step
        across = step if self.k_last else self.lines  # cells along the operand's rows
        down = self.lines if self.k_last else step
        ragged = plan.length is None or plan.length % step != 0
        conditions = cells.whole() if not ragged else [*cells.whole(), f"k0 + {step} <= {length}"]
        width = _width(self.context, cells, across)
        narrow = width if cells.unbroken(width) and not (ragged and self.k_last) else 1
        loop = Loop(self.context, Layout(1, 1, threads, threads, 1, 1), (1, 1))

        def spell(masked: bool) -> None:
            inside = ""
            if masked:
                k = "along" if self.k_last else "down"
                at = _at(cells, self.k_last)
                found = [cells.inside(at, range(len(at))), f"k0 + {k} < {length}" if ragged else ""]
                inside = " && ".join(filter(None, found))
            self._copy(inside, narrow if masked else width, across, down, asynchronous)

        loop.twice(" && ".join(conditions), spell)

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
            size = width * scalar(cells.dtype).bytes
            if width > 1:
                cells.note_wide(width)
            if asynchronous and same and size in (4, 8, 16):
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
        """The copies of a step past the registers, where each thread's lie a fixed number of rows apart.

        A turned operand is copied cell by cell: a warp takes eight of K by four lines, which lie in different banks.
        """
        assert self.cells is not None
        out, cells, threads = self.context.out, self.cells, self.context.program.launch.threads
        if self.turned:
            width, groups = 1, across // TURN
            rows = max(threads // across, 1)
            if across % TURN or (threads // 32) % groups or down % rows:
                return False
            first = f"tid / 32 / {groups} * {32 // TURN} + tid % 32 / {TURN}"
            start = f"tid / 32 % {groups} * {TURN} + tid % {TURN}"
            place = f"along * {self.pitch} + down"
        else:
            lanes = across // width
            rows = max(threads // lanes, 1)
            if threads % lanes or down % rows:
                return False
            first = f"tid / {lanes}"
            start = f"tid % {lanes}" + (f" * {width}" if width > 1 else "")
            place = self.lies("down", "along")
        if width * scalar(cells.dtype).bytes not in (4, 8, 16) or "1" in map(str, cells.shape[-2:]):
            return False
        if width > 1:
            cells.note_wide(width)
        with out.block():
            out.line(f"const int first = {first}, along = {start};")
            here = cells.offset(tuple(at.replace("down", "first") for at in _at(cells, self.k_last)))
            out.line(f"const {spelling.CELLS[cells.dtype]}* const from = {cells.base} + {here};")
            with out.rows(f"for (int i = 0; i < {down // rows}; ++i)"):
                out.line(f"const int down = first + i * {rows};")
                out.line(
                    f"ph_copy_async<{width}>({self.name} + {place}, from + (long long)(i * {rows}) * "
                    f"{cells.strides[-2]}, {inside or 'true'});"
                )
        return True

    def _keep(self, width: int, same: bool) -> None:
        """`x` to its place, in one access where it lies there as it comes."""
        out, cell = self.context.out, spelling.CELLS[self.stored]
        values = [f"x[{n}]" if same else spelling.to_cell(self.converted(f"x[{n}]"), self.stored) for n in range(width)]
        if self.turned:
            for n, value in enumerate(values):
                out.line(f"{self.name}[(along + {n}) * {self.pitch} + down] = {value};")
            return
        kept = "x"
        if not same:
            kept = "y"
            out.line(f"const {cell} y[{width}] = {{{', '.join(values)}}};")
        piece = min(width, 16 // scalar(self.stored).bytes)
        place = f"{self.name} + {self.lies('down', 'along')}"
        if piece == 1:
            for n in range(width):
                out.line(f"{self.name}[{self.lies('down', 'along')} + {n}] = {kept}[{n}];")
            return
        for n in range(0, width, piece):
            out.line(f"ph_store<{piece}>({place} + {n}, {kept} + {n});")


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

"""A tile statement as one loop over the elements that a thread owns.

The loop has a part for rows and a part for columns in vectors; leaves are loaded a vector at a time, then the
expression is computed element by element. Where a cell may lie outside a tensor, the loop stands twice: unmasked
for a tile that lies wholly inside (the same for all threads), masked for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from phobos.codegen import spelling
from phobos.codegen.context import Context, View
from phobos.codegen.expressions import Element, access_dtype, arithmetic, as_type, dtype_of, tile
from phobos.codegen.leaves import Cells, view_of
from phobos.language.scalars import join
from phobos.lowering.layout import Layout
from phobos.lowering.layouts import elementwise_leaves
from phobos.semantics import ir

SEPARATE_STORES = 32
"""Up to this many results a thread computes all before it stores any, so that its loads are in flight together."""

UNROLLED = 256  # elements of a thread up to which its loops are unrolled wholly
UNROLLED_BY = 8

Body = Callable[[Element, str, str, str], None]
"""(element, row register, column register, register) -> the statement for one element."""


class Loop:
    """The loop of one statement: its layout, the leaves of its expressions, and how it is spelled."""

    def __init__(self, context: Context, layout: Layout, shape: tuple[int, ...]) -> None:
        self.context = context
        self.layout = layout
        self.shape = shape
        self.cells: dict[object, tuple[Cells, str]] = {}  # sliced reads, by access or view variable

    def read(self, expression: ir.Expression) -> None:
        """Prepare the sliced loads of an expression: their starts are computed now."""
        for one in elementwise_leaves(expression):
            match one:
                case ir.Load(access=access, type=ir.TileT()) if not self._single(access) and access not in self.cells:
                    prefix = self.context.names.fresh(_stem(access))
                    self.cells[access] = (Cells(self.context, view_of(self.context, access, prefix), prefix), prefix)
                case ir.VariableRef(variable=variable, type=ir.TileT()) if variable not in self.cells:
                    cells = self._cells_of(variable)
                    if cells is not None:
                        self.cells[variable] = cells

    def _single(self, access: ir.Access) -> bool:
        return isinstance(access.base, ir.Variable) and self.context.is_single(access.base)

    def _cells_of(self, variable: ir.Variable) -> tuple[Cells, str] | None:
        view = self.context.views.get(variable)
        if view is None and variable.kind != "view" and self.context.place(variable) is not None:
            view = whole_view(variable)
        if view is None or self._single(view.access):
            return None
        prefix = self.context.names.fresh(variable.name or "t")
        return Cells(self.context, view, prefix), prefix

    # --- spelling ---------------------------------------------------------------------------------

    def run(
        self,
        body: Body,
        masked: bool,
        *,
        owned: bool = False,
        after: Callable[[tuple[str, ...], str], None] | None = None,
        before: Callable[[tuple[str, ...], str], None] | None = None,
    ) -> None:
        """The loop. `owned`: only one of several threads that hold an element. `before`/`after` run once a vector."""
        out, layout = self.context.out, self.layout
        guards = []
        if owned and layout.rows == 1 and layout.downs > 1:
            guards.append(f"{self.down} == 0")
        if owned and layout.columns == 1 and layout.across > 1:
            guards.append(f"{self.along} == 0")
        if owned and layout.warps_used * 32 < layout.threads:
            guards.append(f"tid < {layout.warps_used * 32}")
        if guards:
            with out.block(f"if ({' && '.join(guards)})"):
                self._rows(body, masked, before, after)
        else:
            self._rows(body, masked, before, after)

    @property
    def down(self) -> str:
        return place_names(self.layout)[0]

    @property
    def along(self) -> str:
        return place_names(self.layout)[1]

    def row(self, i: str) -> str:
        """The row of row register `i`."""
        layout, group = self.layout, self.layout.row_group
        if layout.is_fragment:
            first = f"{self.down} / 8 * 16 + {self.down} % 8"
            if layout.pieces_down == 1:
                return spelling.plus(first, spelling.times(i, 8))
            return f"{first} + {i} / 2 * {layout.piece_stride} + {i} % 2 * 8"
        if group == 1:
            return _affine(self.down, 1, i, layout.row_stride)
        if i == "0":
            return _affine(self.down, group, i, layout.row_stride)
        return f"{_affine(self.down, group, f'{i} / {group}', layout.row_stride)} + {i} % {group}"

    def column(self, j: str) -> str:
        """The first column of column step `j`."""
        layout = self.layout
        if layout.is_fragment:
            lane = f"{self.along} % 4" + (f" * {layout.vector}" if layout.vector > 1 else "")
            first = f"{self.along} / 4 * {layout.warp_columns} + {lane}"
            return spelling.plus(first, spelling.times(j, layout.column_stride))
        return _affine(self.along, layout.vector, j, layout.column_stride)

    def _rows(self, body: Body, masked: bool, before: object, after: object) -> None:
        out, layout = self.context.out, self.layout
        if layout.rows == 1:
            self._columns(body, masked, "0", "0", before, after)
            return
        single = layout.row_registers == 1
        i = "0" if single else "i"
        loop = out.scope() if single else self._turns(f"for (int i = 0; i < {layout.row_registers}; ++i)")
        with loop, out.naming("r", f"const int r = {self.row(i)};"):
            if layout.rows_exact:
                self._columns(body, masked, i, "r", before, after)
            else:
                with out.block(f"if (r < {layout.rows})"):
                    self._columns(body, masked, i, "r", before, after)

    def _columns(self, body: Body, masked: bool, i: str, row: str, before: object, after: object) -> None:
        out, layout = self.context.out, self.layout
        if layout.columns == 1:
            self._vector(body, masked, i, row, "0", "0", before, after)
            return
        single = layout.column_steps == 1
        j = "0" if single else "j"
        loop: AbstractContextManager[None]
        if single:
            loop = out.scope() if layout.rows == 1 else nullcontext()  # in a loop over rows `c` is alone
        else:
            loop = self._turns(f"for (int j = 0; j < {layout.column_steps}; ++j)")
        with loop, out.naming("c", f"const int c = {self.column(j)};"):
            if layout.columns_exact:
                self._vector(body, masked, i, row, j, "c", before, after)
            else:
                with out.block(f"if (c < {layout.columns})"):
                    self._vector(body, masked, i, row, j, "c", before, after)

    def _turns(self, head: str) -> AbstractContextManager[None]:
        """A loop over registers is unrolled; what no thread has registers for would only take long to compile."""
        return self.context.out.rows(head, 0 if self.layout.registers <= UNROLLED else UNROLLED_BY)

    def _vector(
        self, body: Body, masked: bool, i: str, row: str, j: str, column: str, before: object, after: object
    ) -> None:
        out, layout = self.context.out, self.layout
        vector = 1 if layout.columns == 1 else layout.vector
        start = self.coordinates(row, column)
        first = _register(layout, i, j, "0")
        if before is not None:
            before(start, first)  # type: ignore[operator]
        for cells, prefix in self.cells.values():
            cells.load(f"{prefix}v", start, layout, masked)
        v = "0" if vector == 1 else "v"
        column_v = column if vector == 1 else "(c + v)"
        element = Element(self.coordinates(row, column_v), lambda leaf: self.leaf(leaf, i, j, v))
        column_register = "0" if layout.columns == 1 else _register(layout, "0", j, v)
        if vector == 1:
            body(element, i, column_register, _register(layout, i, j, "0"))
        else:
            with out.rows(f"for (int v = 0; v < {vector}; ++v)"):
                body(element, i, column_register, _register(layout, i, j, "v"))
        if after is not None:
            after(start, first)  # type: ignore[operator]

    def coordinates(self, row: str, column: str) -> tuple[str, ...]:
        """The element's index on each axis of the statement's shape."""
        if len(self.shape) == 1:
            return (column,)
        at = [column]
        rest = row
        for axis in range(len(self.shape) - 2, 0, -1):
            at.insert(0, f"({rest} % {self.shape[axis]})")
            rest = f"({rest} / {self.shape[axis]})"
        at.insert(0, rest)
        return tuple("0" if length == 1 else name for length, name in zip(self.shape, at, strict=True))

    def leaf(self, leaf: ir.Expression, i: str, j: str, v: str) -> str:
        """The value of a load or a tile variable for the element in register place (i, j, v)."""
        dtype = dtype_of(leaf)
        key: object
        if isinstance(leaf, ir.Load):
            key = leaf.access
            if key not in self.cells:
                assert isinstance(leaf.access.base, ir.Variable)
                return spelling.convert(f"{self.context.name(leaf.access.base)}[0]", access_dtype(leaf.access), dtype)
        else:
            assert isinstance(leaf, ir.VariableRef)
            key = leaf.variable
            if key not in self.cells:
                return self._register_leaf(leaf.variable, dtype, i, j, v)
        cells, prefix = self.cells[key]
        at = "0" if cells.shape[-1] == 1 or v == "0" else v
        return spelling.convert(spelling.from_cell(f"{prefix}v[{at}]", cells.dtype), cells.dtype, dtype)

    def _register_leaf(self, variable: ir.Variable, dtype: str, i: str, j: str, v: str) -> str:
        assert isinstance(variable.type, ir.TileT)
        view = self.context.views.get(variable)
        if view is not None:  # of a tile of one element
            assert isinstance(view.access.base, ir.Variable)
            return spelling.convert(f"{self.context.name(view.access.base)}[0]", access_dtype(view.access), dtype)
        own = self.context.layout(variable)
        row = "0" if own.rows == 1 else i
        column = "0" if own.columns == 1 else j
        at = _register(own, row, column, "0" if own.columns == 1 else v)
        return spelling.convert(f"{self.context.name(variable)}[{at}]", variable.type.dtype, dtype)

    def whole(self, *stores: Cells) -> str:
        """The condition that no cell of any access lies outside; "" where that is always so."""
        conditions: dict[str, None] = {}
        for cells in (*(c for c, _ in self.cells.values()), *stores):
            conditions.update(dict.fromkeys(cells.whole()))
        return " && ".join(conditions)

    def twice(self, condition: str, spell: Callable[[bool], None]) -> None:
        """`spell(masked)` for tiles wholly inside and, where a tile may not be, for the others."""
        out = self.context.out
        if not condition:
            spell(False)
            return
        with out.block(f"if ({condition})"):
            spell(False)
        with out.block("else"):
            spell(True)


def place_names(layout: Layout) -> tuple[str, str]:
    """The C++ variables that hold a thread's place in a layout."""
    if layout.is_fragment:
        shape = f"{layout.warps_down}x{layout.warps_across}"
        return f"down{shape}", f"along{shape}"
    if layout.downs == 1:
        return "0", "tid"
    shape = f"{layout.across}p{layout.patch}" if layout.patch else f"{layout.across}"
    return f"down{shape}", f"along{shape}"


def place_definition(layout: Layout) -> str:
    """The line that sets them."""
    down, along = place_names(layout)
    if layout.is_fragment:
        warp = "tid / 32" if layout.warps_used * 32 == layout.threads else f"tid / 32 % {layout.warps_used}"
        across = "0" if layout.warps_across == 1 else f"{warp} / {layout.warps_down} * 4"
        return f"const int {down} = {warp} % {layout.warps_down} * 8 + tid % 32 / 4, {along} = {across} + tid % 4;"
    if layout.patch:
        patch, warps = layout.patch, layout.across // layout.patch
        return (
            f"const int {down} = tid / 32 / {warps} * {32 // patch} + tid % 32 / {2 * patch} * 2 + tid % 2, "
            f"{along} = tid / 32 % {warps} * {patch} + tid / 2 % {patch};"
        )
    if layout.across == 1:
        return f"const int {down} = tid, {along} = 0;"
    return f"const int {down} = tid / {layout.across}, {along} = tid % {layout.across};"


def whole_view(variable: ir.Variable) -> View:
    """All of a shared tile."""
    assert isinstance(variable.type, ir.TileT)
    subs = tuple(
        ir.SliceSub(
            ir.IntLiteral(variable.span, (), ir.ScalarT("index"), 0),
            ir.IntLiteral(variable.span, (), ir.ScalarT("index"), n),  # type: ignore[arg-type]
            n,  # type: ignore[arg-type]
            True,
        )
        for n in variable.type.shape
    )
    access = ir.Access(variable.span, (), variable, subs)
    return View(access, ("0",) * len(subs), tuple(str(n) for n in variable.type.shape))


def assign(context: Context, statement: ir.Define | ir.Assign, op: str | None, value: ir.Expression) -> None:
    """A whole tile variable, in registers or in shared memory."""
    variable = statement.variable
    if context.place(variable) is not None:
        with context.out.scope():
            _store(context, statement, whole_view(variable), op, value)
        return
    assert isinstance(variable.type, ir.TileT)
    dtype, name = variable.type.dtype, context.name(variable)
    layout = context.layout(variable)
    loop = Loop(context, layout, tuple(n for n in variable.type.shape if isinstance(n, int)))
    with context.out.scope():
        loop.read(value)

        def body(element: Element, i: str, column: str, register: str) -> None:
            text = spelling.bare(combined(context, f"{name}[{register}]", dtype, op, value, element))
            context.out.line(f"{name}[{register}] = {text};")

        loop.twice(loop.whole(), lambda masked: loop.run(body, masked))


def combined(context: Context, old: str, dtype: str, op: str | None, value: ir.Expression, element: Element) -> str:
    """The value of `old op= value` as a `dtype`; `old` is a value of that type."""
    if op is None:
        return as_type(context, value, dtype, element)
    joint = joined(dtype, dtype_of(value))
    left = spelling.convert(old, dtype, joint)
    return spelling.convert(arithmetic(context, op, left, value, joint, element), joint, dtype)


def joined(left: str, right: str) -> str:
    return join(left, right) or left


def store(context: Context, statement: ir.Store) -> None:
    """Slices of a tensor or of a shared tile."""
    with context.out.scope():
        prefix = context.names.fresh(_stem(statement.access))
        view = view_of(context, statement.access, prefix)
        if any(sub.static is None for sub in statement.access.subs if isinstance(sub, ir.SliceSub)):
            _store_stretch(context, statement, view)
        else:
            _store(context, statement, view, statement.op, statement.value)


def _store(context: Context, statement: ir.Statement, view: View, op: str | None, value: ir.Expression) -> None:
    layout = context.layouts.of(statement)
    cells = Cells(context, view, context.names.fresh(_stem(view.access)))
    shape = tuple(n for n in cells.shape if n is not None)
    loop = Loop(context, layout, shape)
    out, dtype = context.out, cells.dtype
    cell = spelling.CELLS[dtype]
    loop.read(value)
    condition = loop.whole(cells)
    vector = 1 if layout.columns == 1 else layout.vector
    waits = statement in context.lowered.two_phase
    apart = waits or layout.registers <= SEPARATE_STORES

    def spell(masked: bool, compute: bool, keep: bool) -> None:
        def before(at: tuple[str, ...], register: str) -> None:
            if not keep:
                out.line(f"{cell} results[{vector}];")
            if op is not None and compute:
                cells.load("old", at, layout, masked)

        def one(element: Element, i: str, column: str, register: str) -> None:
            v = "0" if vector == 1 else "v"
            target = f"results[{register}]" if keep else f"results[{v}]"
            old = spelling.from_cell(f"old[{v}]", dtype)
            text = spelling.to_cell(combined(context, old, dtype, op, value, element), dtype)
            out.line(f"{target} = {spelling.bare(text)};")

        def after(at: tuple[str, ...], register: str) -> None:
            cells.store("results", register if keep else "0", at, layout, masked)

        if compute and not keep:
            loop.run(one, masked, owned=True, before=before, after=after)
        elif compute:
            loop.run(one, masked, before=before)
        else:
            _only_after(loop, masked, after)

    def both(masked: bool) -> None:
        out.line(f"{cell} results[{layout.registers}];")
        spell(masked, True, True)
        spell(masked, False, True)

    if waits:
        out.line(f"{cell} results[{layout.registers}];")
        loop.twice(condition, lambda masked: spell(masked, True, True))
        out.line("__syncthreads();  // all is read before any is stored")
        loop.twice(condition, lambda masked: spell(masked, False, True))
    elif apart and layout.registers > vector:
        loop.twice(condition, both)
    else:
        loop.twice(condition, lambda masked: spell(masked, True, False))


def _only_after(loop: Loop, masked: bool, after: Callable[[tuple[str, ...], str], None]) -> None:
    """The loop without its loads: only the stores."""
    kept, loop.cells = loop.cells, {}
    try:
        loop.run(lambda *_: None, masked, owned=True, before=after)
    finally:
        loop.cells = kept


def _store_stretch(context: Context, statement: ir.Store, view: View) -> None:
    """Slices whose length is known only when run: a loop over the cells, in strides of the CTA."""
    out = context.out
    cells = Cells(context, view, "to")
    cells.shape = tuple(-1 if n is None else n for n in cells.shape)
    threads = context.program.launch.threads
    rank = len(view.access.subs)
    value = statement.value
    loop = Loop(context, Layout(1, 1, threads, threads, 1, 1), (1,) * rank)
    loop.read(value)
    names = tuple(f"e{axis}" for axis in range(rank))
    with out.block(f"for (long long e = tid; e < {' * '.join(view.lengths)}; e += {threads})"):
        rest = "e"
        for axis in range(rank - 1, -1, -1):
            length = view.lengths[axis]
            if axis:
                out.line(f"const long long {names[axis]} = {rest} % {length};")
                rest = f"({rest} / {length})"
            else:
                out.line(f"const long long {names[axis]} = {rest};")
        for read, prefix in loop.cells.values():
            shape = read.access.subs
            read.shape = tuple(1 if isinstance(sub, ir.PointSub) or sub.static == 1 else -1 for sub in shape)
            _load_one(context, read, f"{prefix}v", names)
        element = Element(names, lambda leaf: loop.leaf(leaf, "0", "0", "0"))
        if statement.op is not None:
            _load_one(context, cells, "old", names)
        text = combined(context, spelling.from_cell("old[0]", cells.dtype), cells.dtype, statement.op, value, element)
        out.line(f"const {spelling.CELLS[cells.dtype]} result = {spelling.bare(spelling.to_cell(text, cells.dtype))};")
        at = cells.at(names)
        context.instrument.stored(cells, ("result",), at)
        inside = cells.inside(at, range(rank))
        head = f"if ({inside}) " if inside else ""
        out.line(f"{head}{cells.base}[{cells.offset(at)}] = result;")


def _load_one(context: Context, cells: Cells, array: str, names: tuple[str, ...]) -> None:
    at = cells.at(names)
    inside = cells.inside(at, range(len(at)))
    cell = spelling.CELLS[cells.dtype]
    text = f"{cells.base}[{cells.offset(at)}]"
    if inside:
        text = f"{inside} ? {text} : {spelling.empty_cell(cells.dtype)}"
    context.out.line(f"const {cell} {array}[1] = {{{text}}};")


def _register(layout: Layout, i: str, j: str, v: str) -> str:
    """The number of a register from row register i, column step j and place v in the vector."""
    vector = 1 if layout.columns == 1 else layout.vector
    step = j if layout.column_steps > 1 else "0"
    return spelling.plus(spelling.times(i, layout.column_registers), spelling.times(step, vector), v)


def _affine(thread: str, factor: int, step: str, stride: int) -> str:
    return spelling.plus(spelling.times(thread, factor), spelling.times(step, stride))


def _stem(access: ir.Access) -> str:
    return access.base.name or "t"


__all__ = ["Loop", "assign", "combined", "store", "tile", "whole_view"]

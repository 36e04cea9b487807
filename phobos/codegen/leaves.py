"""The leaves of a tile expression in a loop over a thread's elements: what is loaded where, and under which mask.

A `Cells` is a sliced access with its starts in C++ variables. For one vector of a thread's elements it spells the
load into a small array, or the store from one: wide where the access allows it, element by element under the mask
where a cell may lie outside.
"""

from __future__ import annotations

from phobos.codegen import spelling
from phobos.codegen.context import Context, View
from phobos.codegen.expressions import access_dtype, as_type
from phobos.language.scalars import scalar
from phobos.lowering.layout import Layout
from phobos.lowering.vectors import elements_per_access, extent_poly
from phobos.semantics import ir

MANY_STORES = 32  # results of a thread in one statement


class Cells:
    """`shape` is the access's own (1 where it is broadcast); `needed` says per axis whether a mask may be needed."""

    def __init__(self, context: Context, view: View, prefix: str) -> None:
        self.context = context
        self.access = view.access
        self.firsts = view.firsts
        self.lengths = view.lengths
        self.prefix = prefix
        self.dtype = access_dtype(view.access)
        self.base = context.base(view.access.base)
        self.strides = context.strides(view.access.base)
        self.extents = context.extents(view.access.base)
        masks = context.lowered.masks.get(view.access, (None,) * len(view.access.subs))
        self.needed = tuple(mask is not None and mask.needed for mask in masks)
        self.shape = tuple(sub.static if isinstance(sub, ir.SliceSub) else 1 for sub in view.access.subs)

    @property
    def masked(self) -> bool:
        return any(self.needed)

    def may_be_negative(self, axis: int) -> bool:
        sub = self.access.subs[axis]
        if not isinstance(sub, ir.SliceSub) or sub.whole:
            return False
        values = self.context.lowered.values
        bound = values.at_least(values.poly(sub.first))
        return bound is None or bound < 0

    def whole(self) -> list[str]:
        """Conditions under which no cell of the access lies outside."""
        found = []
        for axis, needed in enumerate(self.needed):
            if needed:
                length = self.lengths[axis]
                if self.may_be_negative(axis):
                    found.append(f"{self.firsts[axis]} >= 0")
                found.append(f"{spelling.plus(self.firsts[axis], length)} <= {self.extents[axis]}")
        return found

    def inside(self, at: tuple[str, ...], axes: range) -> str:
        """The condition that the cell lies inside along `axes`, "" where it always does."""
        found = []
        for axis in axes:
            if self.needed[axis]:
                position = _sum(self.firsts[axis], at[axis])
                if self.may_be_negative(axis):
                    found.append(f"ph_inside({position}, {self.extents[axis]})")
                else:
                    found.append(f"{position} < {self.extents[axis]}")
        return " && ".join(found)

    def offset(self, at: tuple[str, ...]) -> str:
        parts = []
        for axis, stride in enumerate(self.strides):
            position = _sum(self.firsts[axis], at[axis])
            if position == "0" or position == "0LL":
                continue
            if stride == "1":
                parts.append(position)
                continue
            if "+" in position:
                position = f"({position})"
            wide = "(long long)" if self.firsts[axis] == "0" else ""  # a start has 64 bits
            parts.append(f"{wide}{position} * {stride}")
        return " + ".join(parts) or "0"

    def width(self, layout: Layout) -> int:
        """Elements that one instruction moves in `layout`, where no mask interferes."""
        if self.shape[-1] != layout.columns or layout.columns == 1 or not self.context.lowered.options.vectors:
            return 1
        if isinstance(self.access.base, ir.Tensor):
            if self.access.base.name in self.context.pitches and len(self.shape) > 1:
                return 1
            width = elements_per_access(self.access, self.context.lowered.values)
        else:
            width = self.shared_width()
        return min(width, layout.vector)

    def shared_width(self) -> int:
        place = self.context.place(self.access.base) if isinstance(self.access.base, ir.Variable) else None
        last = self.access.subs[-1]
        if place is None or not isinstance(last, ir.SliceSub):
            return 1
        values = self.context.lowered.values
        most = 16 // scalar(self.dtype).bytes
        width = 1
        divisor = 0 if last.whole else values.divisor(values.poly(last.first))
        while width < most and divisor % (width * 2) == 0 and place.pitch % (width * 2) == 0:
            width *= 2
        return width

    def unbroken(self, width: int) -> bool:
        """No `width` neighbours, where an access of that width may start, lie partly inside and partly outside."""
        base = self.access.base
        if width == 1 or not self.needed[-1]:
            return True
        if isinstance(base, ir.Tensor):
            return self.context.lowered.values.divisor(extent_poly(base.extents[-1])) % width == 0
        assert isinstance(base.type, ir.TileT)
        length = base.type.shape[-1]
        return isinstance(length, int) and length % width == 0

    # --- one vector -------------------------------------------------------------------------------

    def at(self, coordinates: tuple[str, ...]) -> tuple[str, ...]:
        return tuple("0" if length == 1 else name for length, name in zip(self.shape, coordinates, strict=True))

    def load(self, array: str, coordinates: tuple[str, ...], layout: Layout, masked: bool) -> None:
        """Declare `array`, a C++ array of cells, and fill it for the vector that starts at `coordinates`."""
        out = self.context.out
        cell = spelling.CELLS[self.dtype]
        at = self.at(coordinates)
        vector = layout.vector if self.shape[-1] != 1 else 1
        guarded = masked and self.masked
        if vector == 1:
            text = f"{self.base}[{self.offset(at)}]"
            condition = self.inside(at, range(len(at))) if guarded else ""
            if condition:
                text = f"{condition} ? {text} : {spelling.empty_cell(self.dtype)}"
            out.line(f"const {cell} {array}[1] = {{{text}}};")
            return
        out.line(f"{cell} {array}[{vector}];")
        if not guarded:
            width = self.width(layout)
            if width > 1:
                self.note_wide(width)
                out.line(f"const {cell}* {array}p = {self.base} + {self.offset(at)};")
                for n in range(0, vector, width):
                    out.line(f"ph_load<{width}>({array}{_plus(n)}, {array}p{_plus(n)});")
                return
            out.line(f"const {cell}* {array}p = {self.base} + {self.offset(at)};")
            with out.rows(f"for (int v = 0; v < {vector}; ++v)"):
                out.line(f"{array}[v] = {array}p[v];")
            return
        lead = self.inside(at, range(len(at) - 1))
        empty = spelling.empty_cell(self.dtype)
        width = self.width(layout)
        if width == vector and self.unbroken(vector):
            self.note_wide(width)
            condition = self.inside(at, range(len(at)))
            out.line(f"if ({condition}) ph_load<{width}>({array}, {self.base} + {self.offset(at)});")
            with out.block("else"), out.rows(f"for (int v = 0; v < {vector}; ++v)"):
                out.line(f"{array}[v] = {empty};")
            return
        last = self.inside((*at[:-1], f"{at[-1]} + v"), range(len(at) - 1, len(at)))
        condition = " && ".join(filter(None, (f"{array}in" if lead else "", last))) or "true"
        if lead:
            out.line(f"const bool {array}in = {lead};")
        with out.rows(f"for (int v = 0; v < {vector}; ++v)"):
            out.line(f"{array}[v] = {condition} ? {self.base}[{self.offset((*at[:-1], f'{at[-1]} + v'))}] : {empty};")

    def store(self, array: str, first: str, coordinates: tuple[str, ...], layout: Layout, masked: bool) -> None:
        """Store the cells in `array` from `first` on."""
        out = self.context.out
        at = self.at(coordinates)
        vector = layout.vector if self.shape[-1] != 1 else 1
        cells = tuple(f"{array}[{spelling.plus(first, v)}]" for v in range(vector))
        start = array if first == "0" else f"{array} + {first}"
        self.context.instrument.stored(self, cells, at)
        if not (masked and self.masked):
            width = self.width(layout) if vector > 1 else 1
            if width > 1:
                self.note_wide(width)
                out.line(f"{spelling.CELLS[self.dtype]}* {self.prefix}p = {self.base} + {self._apart(at, layout)};")
                for n in range(0, vector, width):
                    out.line(f"ph_store<{width}>({self.prefix}p{_plus(n)}, {start}{_plus(n)});")
                return
            for v in range(vector):
                out.line(f"{self.base}[{self.offset((*at[:-1], _sum(at[-1], str(v))))}] = {cells[v]};")
            return
        lead = self.inside(at, range(len(at) - 1))
        last = self.inside((*at[:-1], f"{at[-1]} + v" if vector > 1 else at[-1]), range(len(at) - 1, len(at)))
        condition = " && ".join(filter(None, (lead, last))) or "true"
        if vector == 1:
            out.line(f"if ({condition}) {self.base}[{self.offset(at)}] = {cells[0]};")
            return
        width = self.width(layout)
        if width == vector and self.unbroken(vector):
            self.note_wide(width)
            condition = self.inside(at, range(len(at)))
            out.line(f"if ({condition}) ph_store<{width}>({self.base} + {self._apart(at, layout)}, {start});")
            return
        with out.rows(f"for (int v = 0; v < {vector}; ++v)"):
            there = self.offset((*at[:-1], f"{at[-1]} + v"))
            out.line(f"if ({condition}) {self.base}[{there}] = {array}[{spelling.plus(first, 'v')}];")

    def _apart(self, at: tuple[str, ...], layout: Layout) -> str:
        """The offset of a wide store. Of very many, the compiler takes their sums apart and the stores with them."""
        offset = self.offset(at)
        many = layout.registers > MANY_STORES and isinstance(self.access.base, ir.Tensor)
        return f"ph_apart({offset})" if many else offset

    def note_wide(self, width: int) -> None:
        if isinstance(self.access.base, ir.Tensor):
            wide = self.context.wide
            size = width * scalar(self.dtype).bytes
            wide[self.access.base.name] = max(wide.get(self.access.base.name, 0), size)


def view_of(context: Context, access: ir.Access, prefix: str) -> View:
    """Put an access's starts into variables now."""
    firsts, lengths = [], []
    for axis, sub in enumerate(access.subs):
        if isinstance(sub, ir.PointSub):
            first, length, number = as_type(context, sub.index, "index"), "1", None
        else:
            first = "0" if sub.whole else as_type(context, sub.first, "index")
            number = sub.static
            length = str(number) if number is not None else as_type(context, sub.length, "index")
        start = sub.index if isinstance(sub, ir.PointSub) else sub.first
        if first in ("0", "0LL"):
            firsts.append("0")
        elif isinstance(start, ir.VariableRef) and start.variable.kind in ("let", "loop", "temp"):
            firsts.append(first)  # it has a name already, and keeps its value
        else:
            name = context.names.fresh(f"{prefix}_at{axis}")
            context.out.line(f"const long long {name} = {spelling.bare(first)};")
            firsts.append(name)
        if isinstance(sub, ir.SliceSub) and number is None:
            name = context.names.fresh(f"{prefix}_length{axis}")
            context.out.line(f"const long long {name} = {length} > 0 ? {length} : 0;")
            length = name
        lengths.append(length)
    return View(access, tuple(firsts), tuple(lengths))


def _sum(first: str, second: str) -> str:
    parts = [part for part in (first, second) if part not in ("0", "0LL")]
    return " + ".join(parts) or "0"


def _plus(number: int) -> str:
    return f" + {number}" if number else ""

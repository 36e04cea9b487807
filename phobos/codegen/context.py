"""What the emitter carries along one kernel: names of everything, where tiles live, and the places faults may name."""

from __future__ import annotations

from collections.abc import Callable

from phobos.codegen import spelling
from phobos.codegen.emitted import Site
from phobos.codegen.instrument import Instrument
from phobos.codegen.spelling import Names
from phobos.codegen.writer import Writer
from phobos.diagnostic import Span
from phobos.lowering import ops
from phobos.lowering.decide import Lowered
from phobos.lowering.layout import Layout
from phobos.lowering.shared import Place
from phobos.semantics import ir
from phobos.value import value


@value
class View:
    """A view's base and where its slices start: names of C++ variables, fixed at its `let`."""

    access: ir.Access
    firsts: tuple[str, ...]
    lengths: tuple[str, ...]


class Context:
    """Of one kernel, while it is spelled."""

    def __init__(
        self, lowered: Lowered, file: str, line_of: Callable[[Span], int], sites: list[Site], instrument: Instrument,
        root: int = 0,
    ) -> None:  # fmt: skip
        self.lowered = lowered
        self.program = lowered.program
        self.layouts = lowered.layouts
        self.line_of = line_of
        self.out = Writer(spelling.file_literal(file))
        self.names = Names()
        self.sites = sites  # of all kernels of the launch
        self.root = root
        self.instrument = instrument  # of the launch
        self.leave = "return;"  # how a block ends because the whole grid is to leave
        self.variables: dict[ir.Variable, str] = {}
        self.views: dict[ir.Variable, View] = {}
        self.tensors: dict[ir.Tensor, str] = {t: self.names.fresh(t.name) for t in self.program.tensors.values()}
        self.dims: dict[str, str] = {d.name: self.names.fresh(d.name) for d in self.program.dims.values()}
        self.params: dict[str, str] = {p.name: self.names.fresh(p.name) for p in self.program.params.values()}
        self.pitches: dict[str, str] = {
            t.name: self.names.fresh(t.name + "_pitch")
            for t in self.program.tensors.values()
            if t.name in lowered.options.pitched
        }
        self.maps: dict[tuple[ir.Tensor, int, int], str] = {}  # of bulk copies, by the rows and columns of a box
        self.fetched: dict[tuple[ir.Statement, bool], str] = {}  # where a loop staged a side (left?) of a product
        self.awaited: set[ir.Statement] = set()  # products whose loop says when their sums are waited for
        self.declared: set[ir.Variable] = set()
        self.leaves: list[str] = []  # labels after inlined functions, innermost last
        self.wide: dict[str, int] = {}  # tensors accessed in more than one element at once, and the bytes of it
        self.stray = ""  # under `--debug`, what keeps the first index of this statement outside its table
        self.watched = instrument.stops  # something can stop the grid
        self.warped = False  # `warp` is read: the number of a thread's warp

    # --- variables --------------------------------------------------------------------------------

    def name(self, variable: ir.Variable) -> str:
        if variable not in self.variables:
            self.variables[variable] = self.names.fresh(variable.name or "t")
        return self.variables[variable]

    def place(self, variable: ir.Variable) -> Place | None:
        """Where a tile variable lies in shared memory, or None: in registers."""
        return self.lowered.shared.places.get(variable)

    def layout(self, variable: ir.Variable) -> Layout:
        return self.layouts.of(variable)

    def site(self, what: str, span: Span, calls: tuple[Span, ...], subject: str = "") -> int:
        self.sites.append(Site(what, span, calls, subject, self.root))
        return len(self.sites) - 1

    def map(self, tensor: ir.Tensor, rows: int, columns: int) -> str:
        """The argument by which bulk copies of so large a box name a tensor."""
        key = (tensor, rows, columns)
        if key not in self.maps:
            self.maps[key] = self.names.fresh(tensor.name + "_map")
        return self.maps[key]

    def warp(self) -> str:
        """The number of the thread's warp, in a form that shows the compiler that a whole warp has one: what follows
        from it (where operands lie) then takes none of each thread's registers."""
        self.warped = True
        return "warp"

    @property
    def opening(self) -> list[str]:
        """What a thread knows of its own place, behind `tid`."""
        return ["  const int warp = ph_uniform(tid / 32);"] if self.warped else []

    # --- extents ----------------------------------------------------------------------------------

    def extent(self, extent: int | ir.Dim | ir.Constant) -> str:
        if isinstance(extent, int):
            return spelling.integer(extent)
        if isinstance(extent, ir.Constant):
            return spelling.integer(extent.value)
        return self.dims[extent.name]

    def extents(self, base: ir.Tensor | ir.Variable) -> tuple[str, ...]:
        if isinstance(base, ir.Tensor):
            return tuple(self.extent(extent) for extent in base.extents)
        assert isinstance(base.type, ir.TileT)
        return tuple(spelling.integer(length) for length in base.type.shape if isinstance(length, int))

    def strides(self, base: ir.Tensor | ir.Variable) -> tuple[str, ...]:
        """Elements from one index of each axis to the next."""
        if isinstance(base, ir.Tensor):
            extents = self.extents(base)
            strides = ["1"]
            for axis in range(len(extents) - 1, 0, -1):
                if axis == len(extents) - 1 and base.name in self.pitches:
                    strides.insert(0, self.pitches[base.name])
                else:
                    strides.insert(0, extents[axis] if strides[0] == "1" else f"({extents[axis]} * {strides[0]})")
            return tuple(strides)
        place = self.place(base)
        assert place is not None and isinstance(base.type, ir.TileT)
        numbers = [1]
        for axis in range(len(base.type.shape) - 1, 0, -1):
            length = base.type.shape[axis]
            assert isinstance(length, int)
            numbers.insert(0, place.pitch if axis == len(base.type.shape) - 1 else numbers[0] * length)
        return tuple(spelling.integer(number) for number in numbers)

    def base(self, base: ir.Tensor | ir.Variable) -> str:
        return self.tensors[base] if isinstance(base, ir.Tensor) else self.name(base)

    def is_single(self, variable: ir.Variable) -> bool:
        """A tile of one element that every thread holds."""
        return isinstance(variable.type, ir.TileT) and ops.cells(variable.type) == 1 and self.place(variable) is None

"""What stands around the statements of kernels: `emit` makes one text of CUDA C++ of all that one launch does.

The text holds the device functions it calls and one kernel, whose arguments are, in order: a pointer for each
tensor and a number for each scalar, as the .ph files list them; each extent that has a name; the pitch of each
pitched tensor; the map of each tensor that bulk copies read; the extents of each grid of virtual blocks, where the
blocks are not what is launched; where something can stop the grid, the word that says so, the report that says why,
and the time after which a wait is too long; with a barrier, words for groups of CTAs; and what an instrument writes to.

A kernel whose blocks are what is launched is spelled as it is. Any other schedule, and several kernels in one launch,
make a function of each kernel, which does the work of one virtual block, and a loop that calls it: so a `return` in
a kernel ends its virtual block, and a kernel knows nothing of the order in which its blocks run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

from phobos.codegen import spelling, warpgroups
from phobos.codegen.cards import STATIC_SHARED_BYTES
from phobos.codegen.context import Context
from phobos.codegen.device import pieces_for
from phobos.codegen.emitted import Argument, Emitted, Site
from phobos.codegen.instrument import Entry, Instrument, instrument_of
from phobos.codegen.kernel import body, comment
from phobos.codegen.writer import Writer
from phobos.diagnostic import Span
from phobos.lowering import walk
from phobos.lowering.decide import Lowered
from phobos.semantics import ir, schedules
from phobos.semantics.schedules import Form, Order
from phobos.value import value

AXES = "xyz"
NUMBER = "blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)"  # of a CTA
COUNT = "gridDim.x * gridDim.y * gridDim.z"
Merged = dict[tuple[str, str, tuple[int, int]], Entry]  # by kind, name and box


@value
class Part:
    """A kernel of a launch: `line_of` gives the line (from 1) of a span's start in `file`.

    `waits` is the access for which a barrier stands before its phase.
    """

    lowered: Lowered
    file: str
    line_of: Callable[[Span], int]
    waits: Span | None = None


def emit(lowered: Lowered, file: str, line_of: Callable[[Span], int]) -> Emitted:
    """Spell one kernel, in the form that its options say."""
    part, form = Part(lowered, file, line_of), lowered.options.form
    if form is None:
        return _as_launched(part)
    return emit_work(lowered.program.name, ((part,),), form)


# --- a kernel whose blocks are what is launched -------------------------------------------------------------


def _as_launched(part: Part) -> Emitted:
    lowered, program = part.lowered, part.lowered.program
    instrument = instrument_of(lowered.options.instrument, [program])
    context = Context(lowered, part.file, part.line_of, [], instrument)
    statements = body(context)
    barriers = {s.tensor for s in walk.statements(lowered.body) if isinstance(s, ir.Barrier)}
    entries = [*_given(context), *_stopping(context.watched, len(barriers) == 1), *instrument.arguments()]
    shared = _Shared([part])
    symbol = spelling.kernel_symbol(program.name)
    text = [*_opening([part], symbol, entries), "  const int tid = threadIdx.x;", *context.opening]
    text += [*shared.declaration, *_places(context)]
    text += instrument.opening(NUMBER)
    if context.watched:
        text.append(_state(entries, NUMBER, COUNT))
    for what, axis in _used(lowered.body):
        source = "blockIdx" if what == "block" else "gridDim"
        text.append(f"  const long long {what}_{AXES[axis]} = {source}.{AXES[axis]};")
    text += [statements, "}\n"]
    # A block that waits for another in a `while` waits for ever if the other may never start: beside a second such grid
    # neither would be resident as a whole.
    loops = any(isinstance(s, ir.While) for s in walk.statements(lowered.body))
    together = bool(barriers) or (program.is_persistent and loops)
    return _finished(program.name, part, text, symbol, entries, [context], shared, together, context.watched)


# --- a loop over virtual blocks -----------------------------------------------------------------------------


def emit_work(name: str, phases: Sequence[Sequence[Part]], form: Form) -> Emitted:
    """Spell a launch of several phases of several kernels; `name` is what it is called.

    Arguments of one name are one argument: parameters, extents and pitches that are not the same thing must have
    different names. All kernels have one number of threads, and no grid barrier of their own: the one between two
    phases is taken at the word that stops the grid. `form.phases` has an order for every part.
    """
    names = spelling.Names()
    sites: list[Site] = []
    parts = [part for of_phase in phases for part in of_phase]
    orders = [order for of_phase in form.phases for order in of_phase]
    instrument = instrument_of(parts[0].lowered.options.instrument, [part.lowered.program for part in parts])
    roots = [
        _Root(part, number, order, form.is_persistent, len(parts) > 1, names, sites, instrument)
        for number, (part, order) in enumerate(zip(parts, orders, strict=True))
    ]
    left = iter(roots)
    by_phase = [[next(left) for _ in of_phase] for of_phase in phases]
    for mine in by_phase:
        for root in mine:
            root.several_in_phase = len(mine) > 1
    grids = [
        (Argument("grid", f"{root.number} {axis}", "unsigned"), root.extent(axis))
        for root in roots for axis in AXES[: root.axes]
    ]  # fmt: skip
    watched = len(phases) > 1 or any(root.context.watched for root in roots)
    merged: Merged = {}
    for kinds in (("tensor", "scalar"), ("dim",), ("pitch",), ("map",), ("shadow", "cells")):
        for argument in [argument for root in roots for argument, _ in root.given if argument.kind in kinds]:
            merged.setdefault(_identity(argument), (argument, names.fresh(argument.name)))
    entries = [*merged.values(), *grids, *_stopping(watched, len(phases) > 1), *instrument.arguments()]
    shared = _Shared(parts)
    symbol = spelling.kernel_symbol(name)
    out = Writer("")
    with out.block():
        for number, mine in enumerate(by_phase):
            if number:
                waiting = next((root for root in mine if root.part.waits is not None), mine[0])
                program = waiting.part.lowered.program
                place = waiting.part.waits or program.named
                sites.append(Site("phase", place, (), f"before `{program.name}`", waiting.number))
                out.line("state.block = blockIdx.x, state.blocks = gridDim.x;")
                with instrument.barrier(out, len(sites) - 1, "state.word", "return;"):
                    out.line(f"if (ph_grid_barrier(state, state.word, {len(sites) - 1})) return;")
            with out.block() if len(phases) > 1 else nullcontext():
                _phase(out, mine, form, merged)
    text = [root.function() for root in roots]
    first = parts[0]
    text.append(f"#line {first.line_of(first.lowered.program.named)} {spelling.file_literal(first.file)}")
    text += [*_opening(parts, symbol, entries), *shared.declaration, *instrument.opening(NUMBER)]
    if watched:
        text.append(_state(entries, "blockIdx.x", "gridDim.x"))
    text += [*out.lines[1:-1], "}\n"]
    contexts = [root.context for root in roots]
    return _finished(name, first, text, symbol, entries, contexts, shared, len(phases) > 1, watched)


class _Root:
    """A kernel as a function of one virtual block."""

    def __init__(
        self, part: Part, number: int, order: Order, again: bool, numbered: bool, names: spelling.Names,
        sites: list[Site], instrument: Instrument,
    ) -> None:  # fmt: skip
        self.part, self.number, self.axes, self.l2_group = part, number, order.axes, order.l2_group
        self.again = again  # it is called more than once
        self.numbered = numbered  # what belongs to it has its number in its name
        self.several_in_phase = False
        program = part.lowered.program
        self.name = names.fresh(f"{program.name}_block")
        self.context = Context(part.lowered, part.file, part.line_of, sites, instrument, number)
        self.context.leave = "{ state.leaving = 1; return; }"
        self.statements = body(self.context)
        self.used = _used(part.lowered.body)
        self.given = _given(self.context)

    def extent(self, axis: str) -> str:
        return f"grid{self.number}_{axis}" if self.numbered else f"grid_{axis}"

    @property
    def takes_shared(self) -> bool:
        return self.part.lowered.shared.bytes > 0

    def function(self) -> str:
        parameters = [
            f"const {argument.ctype}& {name}" if argument.kind == "map" else f"{argument.ctype} {name}"
            for argument, name in self.given
        ]
        parameters += [f"const long long {what}_{AXES[axis]}" for what, axis in self.used]
        if self.takes_shared:
            parameters.append("unsigned char* const shared")
        if self.context.watched:
            parameters.append("ph_state& state")
        parameters += [declared for declared, _ in self.context.instrument.parameters()]
        text = [f"// One block of `{self.part.lowered.program.name}`."]
        text += [
            f"__device__ __forceinline__ void {self.name}(",
            ",\n".join(f"    {parameter}" for parameter in parameters) + ") {",
        ]
        tid = "ph_anew(threadIdx.x)" if self.again else "threadIdx.x"
        text += [f"  const int tid = {tid};", *self.context.opening, *_places(self.context), self.statements, "}\n"]
        return "\n".join(text)

    def call(self, merged: Merged) -> str:
        passed = [merged[_identity(argument)][1] for argument, _ in self.given]
        for what, axis in self.used:
            beyond = "0" if what == "block" else "1"
            there = AXES[axis] if what == "block" else self.extent(AXES[axis])
            passed.append(there if axis < self.axes else beyond)
        if self.takes_shared:
            passed.append("shared")
        if self.context.watched:
            passed.append("state")
        passed += [name for _, name in self.context.instrument.parameters()]
        return f"{self.name}({', '.join(passed)})"


def _phase(out: Writer, roots: list[_Root], form: Form, merged: Merged) -> None:
    """The ids of a phase that this worker runs, and for each the kernel that it falls to."""
    ends = [f"end{root.number}" for root in roots[:-1]] + ["blocks"]
    for place, (root, end) in enumerate(zip(roots, ends, strict=True)):
        total = " * ".join(root.extent(axis) for axis in AXES[: root.axes])
        out.line(f"const unsigned {end} = {f'{ends[place - 1]} + ' if place else ''}{total};")
    head = "if (id < blocks)"
    match form.kind:
        case schedules.BLOCKED:
            out.line("const unsigned each = blocks / gridDim.x + (blocks % gridDim.x != 0);")
            out.line("const unsigned first = min(blockIdx.x * each, blocks), last = min(first + each, blocks);")
            head = "for (unsigned id = first; id < last; ++id)"
        case schedules.INTERLEAVED:
            head = "for (unsigned id = blockIdx.x; id < blocks; id += gridDim.x)"
        case schedules.XYZ:
            out.line("const unsigned id = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);")
        case _:
            out.line("const unsigned id = blockIdx.x;")
    with out.block(head):
        for place, root in enumerate(roots):
            if len(roots) == 1:
                _block(out, root, "0", merged, form)
                break
            test = f"if (id < {ends[place]})" if place < len(roots) - 1 else ""
            with out.block(" ".join(filter(None, ("else" if place else "", test)))):
                out.line(f"const unsigned local = id{f' - {ends[place - 1]}' if place else ''};")
                _block(out, root, ends[place - 1] if place else "0", merged, form)
        if form.is_persistent and (reason := _reuse(roots)):
            out.line(f"__syncthreads();  // {comment(reason)}")


def _block(out: Writer, root: _Root, start: str, merged: Merged, form: Form) -> None:
    """The coordinates of one virtual block, and its work."""
    local = "local" if root.several_in_phase else "id"
    x, y = root.extent("x"), root.extent("y")
    number = local
    if root.axes == 1:
        out.line(f"const unsigned x = {local};")
    else:
        inner = local
        if root.axes == 3:
            out.line(f"const unsigned inner = {local} % ({x} * {y}), z = {local} / ({x} * {y});")
            inner = "inner"
        if root.l2_group == 1:
            out.line(f"const unsigned x = {inner} % {x}, y = {inner} / {x};")
        else:
            band = f"{root.l2_group} * {y}"
            out.line(f"const unsigned band = {inner} / ({band}) * {root.l2_group}, offset = {inner} % ({band});")
            out.line(f"const unsigned height = min({x} - band, {root.l2_group}u);  // of this band of blocks along x")
            out.line("const unsigned x = band + offset % height, y = offset / height;")
            number = f"x + {x} * (y + {y} * z)" if root.axes == 3 else f"x + {x} * y"
    call = root.call(merged)
    named = f"{start} + {number}" if start != "0" else number
    if root.context.watched:
        out.line(f"state.block = {named}, state.blocks = blocks;")
    instrument, context = root.context.instrument, root.context
    if form.is_persistent and instrument.wants_blocks:
        site = context.site("block", context.program.named, (), context.program.name)
        with instrument.virtual_block(out, site, named):
            out.line(f"{call};")
    else:
        out.line(f"{call};")
    if root.context.watched:
        out.line("if (state.leaving) return;")


def _reuse(roots: list[_Root]) -> str | None:
    """Why the threads must wait for each other before the next virtual block."""
    if len(roots) > 1 and any(root.takes_shared for root in roots):
        return "the next block may be of another kernel, with other things in shared memory"
    return next((root.part.lowered.between_blocks for root in roots if root.part.lowered.between_blocks), None)


# --- the frame ----------------------------------------------------------------------------------------------


class _Shared:
    """The shared memory of a CTA: what its largest kernel needs."""

    def __init__(self, parts: Sequence[Part]) -> None:
        size = max(part.lowered.shared.bytes for part in parts)
        flagged = any("dynshared" in part.lowered.program.flags for part in parts)
        self.dynamic = size if flagged or size > STATIC_SHARED_BYTES else 0
        self.static = 0 if self.dynamic else size
        self.alignment = max(part.lowered.shared.alignment for part in parts)

    @property
    def declaration(self) -> list[str]:
        aligned = f"__align__({self.alignment})"
        if self.dynamic:
            return [f"  extern __shared__ {aligned} unsigned char shared[];"]
        return [f"  __shared__ {aligned} unsigned char shared[{self.static}];"] if self.static else []


def _identity(argument: Argument) -> tuple[str, str, tuple[int, int]]:
    return argument.kind, argument.name, argument.box


def _given(context: Context) -> list[Entry]:
    """What the caller of a kernel gives it: tensors and numbers, extents, pitches, maps."""
    found: list[Entry] = []
    for parameter in context.program.parameters:
        if isinstance(parameter, ir.Tensor):
            argument = Argument("tensor", parameter.name, f"{spelling.CELLS[parameter.dtype]}*")
            found.append((argument, context.tensors[parameter]))
        else:
            kind = spelling.VALUES[parameter.dtype]
            argument = Argument("scalar", parameter.name, "long long" if kind in ("int", "bool") else kind)
            found.append((argument, context.params[parameter.name]))
    found += [(Argument("dim", name, "long long"), there) for name, there in context.dims.items()]
    found += [(Argument("pitch", name, "long long"), there) for name, there in context.pitches.items()]
    for (tensor, rows, columns), there in context.maps.items():
        found.append((Argument("map", tensor.name, "ph_map", (rows, columns)), there))
    return found + context.instrument.given(context)


def _stopping(watched: bool, grouped: bool) -> list[Entry]:
    found: list[Entry] = []
    if watched:
        found.append((Argument("word", "", "unsigned*"), "stop_word"))
        found.append((Argument("report", "", "ph_report*"), "report"))
        found.append((Argument("timeout", "", "unsigned long long"), "timeout_ns"))
    if grouped:
        found.append((Argument("groups", "", "unsigned*"), "groups"))
    return found


def _opening(parts: Sequence[Part], symbol: str, entries: Sequence[Entry]) -> list[str]:
    launches = [part.lowered.program.launch for part in parts]
    least = max(max(part.lowered.program.launch.min_blocks or 0, part.lowered.options.together) for part in parts)
    bounds = f"{launches[0].threads}, {least}" if least else f"{launches[0].threads}"
    parameters = ",\n".join(
        f"    {'const __grid_constant__ ' if argument.kind == 'map' else ''}{argument.ctype} {name}"
        for argument, name in entries
    )
    return [f'extern "C" __global__ void __launch_bounds__({bounds})', f"{symbol}(", parameters + ") {"]


def _places(context: Context) -> list[str]:
    """The tile variables that lie in shared memory."""
    text = []
    for variable, place in context.lowered.shared.places.items():
        if isinstance(variable, ir.Variable) and isinstance(variable.type, ir.TileT):
            cell = spelling.CELLS[variable.type.dtype]
            text.append(f"  {cell}* const {context.name(variable)} = {spelling.shared(cell, place.offset)};")
    return text


def _state(entries: Sequence[Entry], block: str, blocks: str) -> str:
    groups = "groups" if any(argument.kind == "groups" for argument, _ in entries) else "nullptr"
    head = f"  ph_state state = {{stop_word, report, timeout_ns, {groups}, 0, 1,"
    return f"{head}\n                    {block}, {blocks}, 0}};"


def _used(body: ir.Block) -> list[tuple[str, int]]:
    """Which block indices and grid extents are read: ("block" or "blocks", axis)."""
    found: set[tuple[int, str]] = set()
    for statement in walk.statements(body):
        for root in walk.expressions(statement):
            for one in walk.every(root):
                if isinstance(one, ir.BlockIndex):
                    found.add((one.axis, "block"))
                elif isinstance(one, ir.GridExtent):
                    found.add((one.axis, "blocks"))
    return [(what, axis) for axis, what in sorted(found)]


def _finished(
    name: str, part: Part, text: list[str], symbol: str, entries: Sequence[Entry], contexts: Sequence[Context],
    shared: _Shared, cooperative: bool, watched: bool,
) -> Emitted:  # fmt: skip
    whole = "\n".join(text)
    wide: dict[str, int] = {}
    for context in contexts:
        for tensor, size in context.wide.items():
            wide[tensor] = max(size, wide.get(tensor, 0))
    file = spelling.file_literal(part.file)[1:-1]
    top = f"// {spelling.kernel_symbol(name)}, from {file}. Written by Phobos tools.\n\n"
    top += f"{pieces_for(whole)}\n{warpgroups.pieces_for(whole)}"
    return Emitted(
        top + whole, symbol, tuple(argument for argument, _ in entries),
        tuple(contexts[0].sites), part.lowered.program.launch.threads, shared.dynamic, shared.static, wide, cooperative,
        watched,
    )  # fmt: skip

"""`phobos check --prove`: the smallest launch at which a finding happens, found by running the reference.

A bounded search over grids of up to five blocks, sizes around the borders of tiles, parameters and constants, in
that order, so that the first launch that fails is about the smallest. What comes out is a `phobos run` command and
a drawing of the blocks over time. A finding that no run confirms is said to be unconfirmed, which proves nothing.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from time import perf_counter

import numpy as np

from phobos.diagnostic import Diagnostic, Span
from phobos.language.scalars import FLOATS
from phobos.runtime.faults import FAMILIES
from phobos.runtime.lanes import Lane, Panel, State, as_text
from phobos.runtime.reference.evaluation import NotExecutable
from phobos.runtime.reference.execute import Options, execute
from phobos.runtime.reference.faults import Fault, Site
from phobos.runtime.reference.numbers import DTYPES
from phobos.runtime.reference.races import TooLarge
from phobos.semantics import grid as grids
from phobos.semantics import ir
from phobos.semantics.module import Module, Unit, analyse
from phobos.semantics.program import Program, Settings
from phobos.semantics.tiles import slice_lengths
from phobos.semantics.values import statements_of
from phobos.syntax.lines import LineIndex
from phobos.value import value

GRIDS = (1, 2, 3, 4, 5)
MULTIPLES = (1, 2, 3, 5, 4, 9)  # of a tile
PARAMETERS = (0, 1, 2)
MOST_CONSTANTS = 12
MOST_RUNS = 400
STEPS = 200_000
PROVABLE = ("PH2", "PH3", "PH5")  # groups whose errors say that something happens
FILLS = ("iota", "random")
FAMILY = {code: tuple(kind for kind, codes in FAMILIES.items() if code in codes) for code in sum(FAMILIES.values(), ())}


@value
class Launch:
    """One point of the search."""

    grid: tuple[int, int, int]
    sizes: dict[str, int]
    constants: dict[str, int]
    scheduler: str | None
    fill: str  # of float tensors; counting up first, as it is easy to follow, then numbers of which none is 0


@value
class Proof:
    """A launch at which the finding happens: the command that shows it, what the run says, what the blocks do."""

    command: str
    kind: str
    message: str
    lanes: tuple[Lane, ...]

    @property
    def note(self) -> str:
        """Everything, for a diagnostic's notes."""
        return "\n".join([f"it happens: {self.message}", *as_text(self.lanes), f"to see it: {self.command}"])

    def panel(self, title: str) -> Panel:
        """Everything, for a picture."""
        return Panel(title, f"it happens: {self.message}", self.lanes, f"to see it: {self.command}")


def prove(path: str, text: str, diagnostic: Diagnostic, budget_s: float = 10.0) -> Proof | None:
    """The smallest launch found at which a finding (spans absolute) happens, or None.

    Only errors of groups 2xx, 3xx and 5xx that a run can show are searched for.
    """
    kinds = FAMILY.get(diagnostic.code, ())
    if diagnostic.severity != "error" or not diagnostic.code.startswith(PROVABLE) or not kinds:
        return None
    lines = LineIndex(text)
    rows = {lines.line_of(span.start) for span in (diagnostic.span, *(r.span for r in diagnostic.related))}
    until = perf_counter() + budget_s
    module = analyse(path, text)
    for name in kernels_at(module, diagnostic):
        searches = (itertools.islice(_launches(path, text, name, fill), MOST_RUNS) for fill in FILLS)
        for launch in itertools.chain.from_iterable(searches):
            if perf_counter() > until:
                return None
            chosen = analyse(path, text, Settings(constants=tuple(sorted(launch.constants.items()))))
            unit = chosen.kernels[name]
            fault = run(unit.program, launch, max(0.5, until - perf_counter()))
            if fault is None or fault.kind not in kinds:
                continue
            places = {lines.line_of(span.start) for span in _spans(chosen, unit, fault)}
            if places & rows or not places:
                lanes = lanes_of(fault, launch, chosen, unit, lines)
                return Proof(command(path, name, unit.program, launch), fault.kind, fault.message, lanes)
    return None


def kernels_at(module: Module, diagnostic: Diagnostic) -> list[str]:
    """The kernels that a finding is in: the one around it, or those that inline the function around it."""
    start = diagnostic.span.start
    for unit in module.units:
        if unit.offset <= start < unit.offset + len(unit.item.text):
            if unit.program.owner is None:
                return [unit.program.name]
            return [n for n, k in module.kernels.items() if unit.program.owner in k.program.inlined]
    return []


def run(program: Program, launch: Launch, timeout_s: float) -> Fault | None:
    """What goes wrong in one launch of the reference runtime; None when nothing does, or it cannot be run."""
    tensors: dict[str, np.ndarray] = {}
    extents = launch.sizes
    barriers = {s.tensor.name for s in statements_of(program.body) if isinstance(s, ir.Barrier)}
    for name, tensor in program.tensors.items():
        shape = tuple(_extent(extent, extents) for extent in tensor.extents)
        array = np.zeros(shape, DTYPES[tensor.dtype])
        if name not in barriers and tensor.dtype in FLOATS:
            counted = launch.fill == "iota"
            array[...] = np.arange(array.size).reshape(shape) if counted else np.random.default_rng(0).random(shape)
        tensors[name] = array
    params = {name: 1.0 if p.dtype in FLOATS else extents[name] for name, p in program.params.items()}
    dims = {name: extents[name] for name in program.dims}
    options = Options(races=True, scheduler=launch.scheduler, timeout_s=timeout_s, step_limit=STEPS)
    try:
        execute(program, tensors, params, dims, launch.grid, options)
    except Fault as fault:
        return fault
    except (NotExecutable, TooLarge):
        return None
    return None


def _extent(extent: int | ir.Dim | ir.Constant, sizes: Mapping[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    return extent.value if isinstance(extent, ir.Constant) else sizes[extent.name]


# --- the search -----------------------------------------------------------------------------------------


def _launches(path: str, text: str, name: str, fill: str) -> Iterator[Launch]:
    """Launches inside the contract of the kernel, about the smallest first."""
    for constants in _constants(path, text, name):
        program = analyse(path, text, Settings(constants=tuple(sorted(constants.items())))).kernels[name].program
        known = grids.grid_of(program)
        has_atomics = any(isinstance(s, ir.Atomic) for s in statements_of(program.body))
        schedulers = ("round-robin", "adversarial") if has_atomics else (None,)
        for grid, sizes in _points(program, known.persistent):
            if any(p.dim in sizes and sizes[p.dim] % p.tile for p in program.promises if p.tile > 0):
                continue
            cap = grids.cap_at(program, sizes)
            if cap is not None and grid[0] > cap[0]:
                continue
            if any(not c.stride_form and c.constant.value != grid[0] for c in known.constants):
                continue
            for scheduler in schedulers:
                yield Launch(grid, sizes, constants, scheduler, fill)


def _constants(path: str, text: str, name: str) -> Iterator[dict[str, int]]:
    """The default constants, then others."""
    program = analyse(path, text).kernels[name].program
    yield {}
    names = [c for c in program.constants.values() if len(c.choices) > 1]
    others = itertools.product(*(c.choices for c in names)) if names else iter(())
    for values in itertools.islice(others, MOST_CONSTANTS):
        chosen = {c.name: number for c, number in zip(names, values, strict=True)}
        if any(program.constants[key].value != number for key, number in chosen.items()):
            yield chosen


def _points(program: Program, persistent: bool) -> Iterator[tuple[tuple[int, int, int], dict[str, int]]]:
    """Grids and sizes: few blocks and small sizes first, for each grid sizes that give it work."""
    seen: set[tuple[object, ...]] = set()
    for grid, sizes in itertools.product(GRIDS, _sizes(program)):
        for chosen in _grids(program, persistent, grid, sizes):
            key = (chosen, tuple(sizes.items()))
            if key not in seen and 0 < chosen[0] * chosen[1] * chosen[2] <= 64:
                seen.add(key)
                yield chosen, sizes


def _grids(
    program: Program, persistent: bool, count: int, sizes: dict[str, int]
) -> Iterator[tuple[int, int, int]]:
    """That many blocks, or what the text says; two along each further axis that is read where the caller may say."""
    if not persistent:
        try:
            yield grids.blocks_at(program, sizes)
            return
        except (grids.GridUnknown, grids.GridDisagrees):
            pass
    yield count, 1, 1
    if not grids.has_one_axis(program):
        _, y, z = (2 if axis.read else 1 for axis in grids.grid_of(program).axes)
        yield count, y, z


def _sizes(program: Program) -> list[dict[str, int]]:
    """Extents around tile borders, integer parameters small; those of a dimension that is never sliced are small."""
    tiles = {name: max(lengths) for name, lengths in slice_lengths(program).items()}
    dims = list(program.dims)
    params = [name for name, p in program.params.items() if p.dtype not in FLOATS]
    found: list[dict[str, int]] = []
    for multiple, off in itertools.product(MULTIPLES, (0, 1)):
        extents = {d: tiles[d] * multiple + off if d in tiles else max(2, multiple) for d in dims}
        for values in itertools.product(PARAMETERS, repeat=min(len(params), 2)):
            chosen = dict(zip(params, itertools.chain(values, itertools.repeat(1)), strict=False))
            found.append({**extents, **{name: extents.get(name, number) for name, number in chosen.items()}})
    return found


# --- what is shown ----------------------------------------------------------------------------------------


def command(path: str, name: str, program: Program, launch: Launch) -> str:
    """The `phobos run` that shows it."""
    barriers = {s.tensor.name for s in statements_of(program.body) if isinstance(s, ir.Barrier)}
    words = ["phobos", "run", path, "--kernel", name, "--device", "cpu", "--detect", "races"]
    words += ["--grid", ",".join(str(n) for n in launch.grid if n > 1 or n == launch.grid[0])]
    numbers = {**launch.constants, **{d: n for d, n in launch.sizes.items() if d in program.dims}}
    numbers |= {p: n for p, n in launch.sizes.items() if p in program.params and p not in program.dims}
    for key, number in numbers.items():
        words += ["--arg" if key in program.params and key not in program.dims else "--set", f"{key}={number}"]
    for key, parameter in program.params.items():
        if key not in launch.sizes and parameter.dtype in FLOATS:
            words += ["--arg", f"{key}=1"]
    for key, tensor in program.tensors.items():
        if key not in barriers:
            words += ["--arg", f"{key}={launch.fill if tensor.dtype in FLOATS else 'zeros'}"]
    if launch.scheduler:
        words += ["--scheduler", launch.scheduler]
    return shlex.join(words)


_GROUP = re.compile(r"blocks? ((?:\d+(?:-\d+)?(?:, | and )?)+) ((?:\[[^\]]*\]|[^,;:\[])+)")  # a cell is one word


def lanes_of(fault: Fault, launch: Launch, module: Module, unit: Unit, lines: LineIndex) -> tuple[Lane, ...]:
    """What became of each block of a launch that went wrong."""
    said: dict[int, str] = {}
    for sentence in _sentences(fault, module, unit, lines):
        for found in _GROUP.finditer(sentence):
            line = sentence.rpartition(" (line ")[2].rstrip(")") if " (line " in sentence else ""
            for block in _numbers(found[1]):
                where = f" (line {line})" if line and f"(line {line})" not in found[2] else ""
                said.setdefault(
                    block, re.sub(r"^(waits?|have left|has left)(.*)$", _singular, found[2].strip()) + where
                )
    blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
    return tuple(Lane(block, _state(fault, said.get(block, "")), said.get(block, "")) for block in range(blocks))


def _state(fault: Fault, said: str) -> State:
    if "wait" in said:
        return "waits"
    if "left" in said:
        return "left"
    return "collides" if fault.kind == "race" and said else "works"


def _singular(found: re.Match[str]) -> str:
    return {"wait": "waits", "have left": "has left"}.get(found[1], found[1]) + found[2]


def _sentences(fault: Fault, module: Module, unit: Unit, lines: LineIndex) -> Iterator[str]:
    sites: list[Site] = [site for site in (fault.site, *fault.others) if site is not None]
    for site in sites:
        yield f"{site.message.removesuffix(' here')} (line {lines.line_of(module.absolute(unit, site.span).start) + 1})"
    yield fault.message


def _numbers(text: str) -> Iterator[int]:
    for found in re.finditer(r"(\d+)(?:-(\d+))?", text):
        yield from range(int(found[1]), int(found[2] or found[1]) + 1)


def _spans(module: Module, unit: Unit, fault: Fault) -> Iterator[Span]:
    for site in (fault.site, *fault.others):
        if site is not None:
            for span in (site.span, *site.calls):
                yield module.absolute(unit, span)

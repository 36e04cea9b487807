"""What really happens: every sample launched on the reference runtime, over grids, sizes, constants and schedules.

A sample *fails* when some run inside its contract ends in a fault. What the launch refuses because of an obligation
left to it (a promise on a runtime extent, more blocks than cells, residency, arrays that overlap) is outside the
contract: it is counted under what refused it and is neither failure nor miss. Every launch goes the product's own
way (`prepare`), so refusals are the product's; `probes` brings about one of each kind on purpose, and a refusal
that does not happen or does not stand at its obligation is a complaint. A kernel that is refused everywhere fails.

Schedules: a kernel without atomics that shows no race under one schedule cannot end differently under another
(every pair of conflicting accesses is ordered by barriers), so one schedule with race detection decides it. A
kernel with atomics runs under round robin, the adversarial scheduler and `SEEDS` random ones; one block alone has
but one schedule. Where the schedules leave different results, the order of atomics decides: no fault, but no correct
kernel either.

An error claims that some run fails. Before it is called false, `second_look` tries more: the example that it gives,
other contents, larger sizes and grids.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from phobos.diagnostic import Diagnostic
from phobos.errors import CheckError, LaunchError
from phobos.runtime.judge import Prepared, prepare
from phobos.runtime.kernel import Kernel
from phobos.runtime.options import LaunchOptions
from phobos.runtime.placing import has_barrier
from phobos.runtime.reference.execute import Options, execute
from phobos.runtime.reference.faults import Fault
from phobos.semantics import grid as grids
from phobos.semantics import module as modules
from phobos.semantics.program import Program
from tests.truth.generator import Sample
from tests.truth.probes import Probe, probes

SEEDS = 20
GRIDS = (1, 2, 3, 4, 5)
MORE_GRIDS = (2, 3, 9, 12)
LARGEST_GRID = 130  # where a number in the text speaks of a block that smaller ones do not have
PLANES = ((1, 2, 1), (2, 2, 1), (3, 2, 1), (2, 3, 1))
EXAMPLE = re.compile(r"for example with (\d+) blocks?((?:, \w+ = -?\d+)*)")
ASSUMED = re.compile(r"// phobos: assume .*")
STEPS = 60_000
PATH = "<truth>"

DTYPES = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "f64": np.float64}

Grid = tuple[int, int, int]
Arrays = dict[str, np.ndarray]


@dataclass
class Failure:
    """The first fault of its kind: the run that showed it, its places in the file, the tensors it names."""

    kind: str
    message: str
    at: str
    spans: tuple[tuple[int, int], ...]
    tensors: tuple[str, ...]


@dataclass
class Verdict:
    """`failures` by kind (none: it never fails); `varies` names two runs whose results differ by the grid.

    `unsteady`: the results hang on the schedule. `refused` counts launches by what refused them; `complaints` are
    refusals that were not as they should be.
    """

    runs: int = 0
    failures: dict[str, Failure] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    varies: str | None = None
    unsteady: bool = False


class Launcher(Kernel):
    """A kernel that remembers its programs: one sample is launched a hundred times."""

    def __init__(self, sample: Sample, found: list[Diagnostic] | None) -> None:
        super().__init__(PATH, sample.text, sample.kernel)
        self._findings = found
        self._known: dict[tuple[tuple[str, int], ...], tuple[modules.Module, modules.Unit]] = {}

    def analysed(self, constants: Mapping[str, int] | None = None) -> tuple[modules.Module, modules.Unit]:
        key = tuple(sorted((constants or {}).items()))
        if key not in self._known:
            self._known[key] = super().analysed(constants)
        return self._known[key]

    def ready(self, named: Mapping[str, Any], grid: Any, constants: Mapping[str, int], resident: Any) -> Prepared:
        """Raises CheckError, LaunchError."""
        options = LaunchOptions(tuple(sorted(constants.items())), grid, resident)
        return prepare(self, self.bound((), named, dict(constants)), (), named, options)


def judge(sample: Sample, found: list[Diagnostic] | None = None, counts: Sequence[int] = GRIDS) -> Verdict:
    """Run a sample through everything, until each kind of fault that it can show has most likely been met."""
    verdict = Verdict()
    kernel = Launcher(sample, found)
    refusals: list[LaunchError] = []
    _probe(verdict, kernel, sample)
    for constants in _constants(sample, kernel):
        module, unit = kernel.analysed(constants)
        _static_promises(verdict, unit.program, module, unit, constants)
        for sizes in _sizes(sample):
            results: dict[Grid, Arrays] = {}
            for grid in _grids(sample, unit.program, sizes, counts):
                arrays = arrays_of(unit.program, sample, sizes)
                named = {**arrays, **_parameters(unit.program, sizes)}
                asked = grid if grid[1:] != (1, 1) else grid[0]
                try:
                    prepared = kernel.ready(named, asked, constants, None)
                except CheckError:
                    verdict.refused["check"] += 1
                    continue
                except LaunchError as error:
                    verdict.refused[error.kind or "other"] += 1
                    refusals.append(error)
                    continue
                for scheduler, seed in _schedules(sample, grid):
                    verdict.runs += 1
                    copies = {name: held.copy() for name, held in prepared.arrays.items()}
                    try:
                        run(prepared, copies, scheduler, seed)
                    except Fault as fault:
                        at = _shown(constants, sizes, grid, scheduler, seed)
                        bound = prepared.placement.bound
                        failure = _failure(fault, at, bound.module, bound.unit)
                        verdict.failures.setdefault(fault.kind, failure)
                        break
                    verdict.unsteady = verdict.unsteady or not _same(results.get(grid, copies), copies)
                    results[grid] = copies
            if sample.persistent and not sample.uses_atomics and verdict.varies is None:
                verdict.varies = _difference(results, constants, sizes)
            if any(kind in ("deadlock", "race") for kind in verdict.failures) or len(verdict.failures) > 2:
                return verdict
    if not verdict.runs and refusals:
        # A promise is looked at first and is kept at some size, so the rest is to blame where there is a rest.
        unlike = [one for one in refusals if one.kind != "aligned-broken"] or refusals
        error = next((one for one in unlike if one.kind is not None), unlike[0])
        kind = error.kind or "other"
        place = () if error.diagnostic is None else ((error.diagnostic.span.start, error.diagnostic.span.end),)
        verdict.failures.setdefault(kind, Failure(kind, f"refused everywhere: {error}", "every launch", place, ()))
    return verdict


def second_look(sample: Sample, found: list[Diagnostic] | None) -> bool:
    """Whether a kernel hangs or races after all, with other contents, at larger sizes or on a larger grid."""
    parameters = {name: (-1, *numbers) for name, numbers in sample.parameters.items()}
    spoken_of = {int(number) + more for number in re.findall(r"\b\d+\b", sample.text) for more in (1, 2)}
    counts = (*MORE_GRIDS, *sorted(count for count in spoken_of if max(MORE_GRIDS) < count <= LARGEST_GRID))
    sizes = dict(sample.sizes)
    if "N" in sizes:
        most = max(sizes["N"])
        kept = [sample.kept * -(-most // sample.kept) * n for n in (1, 2, 3, 4)]
        few = [sample.kept * n for n in (1, 2, 3, 4)]
        sizes["N"] = tuple(sorted({*few, *kept, *(most * n + d for n in (1, 2, 4, 6) for d in (0, 1))}))
    sizes |= {name: (2, 16) for name in ("S", "M") if name in sizes}
    for claimed in found or ():
        for note in claimed.notes if claimed.severity == "error" else ():
            example = EXAMPLE.search(note)
            if example is not None:
                told = dict(part.strip().split(" = ") for part in (example[2] or "").split(",") if part)
                at = {name: (int(told[name]),) if name in told else numbers for name, numbers in sizes.items()}
                given = {name: (int(told[name]),) if name in told else n for name, n in parameters.items()}
                if _fails(replace(sample, sizes=at, parameters=given), found, (int(example[1]),)):
                    return True
    for count in counts:  # as many cells as blocks: more blocks are refused, fewer do not come to the last cell
        full = {name: (count,) if name in ("N", "S", "M") else numbers for name, numbers in sizes.items()}
        if _fails(replace(sample, sizes=full, parameters=parameters), found, (count,)):
            return True
    for content in ("random", "zeros", "ones", "large"):
        fills = {name: fill if fill in ("zeros", "iota") else content for name, fill in sample.fills.items()}
        wider = replace(sample, fills=fills, sizes=sizes, parameters=parameters)
        if _fails(wider, found, counts):
            return True
    return False


def _fails(sample: Sample, found: list[Diagnostic] | None, counts: Sequence[int]) -> bool:
    """Whether some launch hangs or races. One that breaks an assumption before it comes to that goes on without it."""
    met = judge(sample, found, counts).failures.keys()
    if "assumption-broken" in met and not met & {"deadlock", "race"}:
        met = judge(replace(sample, text=ASSUMED.sub("//", sample.text)), found, counts).failures.keys()
    return bool(met & {"deadlock", "race"})


def differs_up_to(sample: Sample, line: int) -> bool | None:
    """Whether the grid decides what a kernel has done by the end of the loop in that line (from 1), as is said of it.

    What follows may do it all again, and other loops before it may have done it already: both are left out. None where
    one grid alone is possible.
    """
    lines = sample.text.splitlines()
    margin = len(lines[line - 1]) - len(lines[line - 1].lstrip())
    end = next(at for at in range(line, len(lines)) if lines[at] == " " * margin + "}")
    closed = [" " * depth + "}" for depth in range(margin - 2, -1, -2)]
    whole = lines[: end + 1]
    seen = False
    for text in (whole, [*_without_loops(whole[: line - 1]), *whole[line - 1 :]]):
        cut = replace(sample, text="\n".join([*text, *closed]) + "\n")
        program = Launcher(cut, None).analysed({})[1].program
        if any(not constant.stride_form for constant in grids.grid_of(program).constants):
            return None
        seen = seen or judge(cut, None).varies is not None
    return seen


def _without_loops(lines: Sequence[str]) -> Iterator[str]:
    """The lines before a place, without the loops that have ended there."""
    until = ""
    for at, line in enumerate(lines):
        end = line[: len(line) - len(line.lstrip())] + "}"
        if until:
            until = "" if line == until else until
        elif line.lstrip().startswith("for ") and end in lines[at:]:
            until = end
        else:
            yield line


def other_axis_works(sample: Sample) -> bool | None:
    """Whether a persistent kernel would leave other results if its grid had more blocks along axis y, as it reads.

    Its own launches never have: the text without `@persistent` is run, with two blocks and as many as the text speaks
    of. None where no two runs tell.
    """
    text = re.sub(r"^@persistent(\(1\))?\n", "", sample.text, flags=re.MULTILINE)
    ordinary = replace(sample, text=text, persistent=False)
    kernel = Launcher(ordinary, None)
    spoken_of = {int(number) + 1 for number in re.findall(r"\b\d+\b", sample.text)}
    planes = [(2, 1, 1), (2, 2, 1), *((2, n, 1) for n in sorted(spoken_of) if 2 < n <= max(MORE_GRIDS))]
    seen = False
    for constants in _constants(ordinary, kernel):
        program = kernel.analysed(constants)[1].program
        for sizes in _sizes(ordinary):
            left: list[Arrays] = []
            for grid in planes:
                arrays = arrays_of(program, ordinary, sizes)
                options = Options(races=False, scheduler=None, seed=0, step_limit=STEPS, timeout_s=20.0)
                try:
                    execute(program, arrays, _parameters(program, sizes), sizes, grid, options)
                except Fault:
                    break
                left.append(arrays)
            for other in left[1:]:
                seen = True
                if any(not np.array_equal(left[0][name], other[name], equal_nan=True) for name in other):
                    return True
    return False if seen else None


def run(prepared: Prepared, arrays: Arrays, scheduler: str | None, seed: int) -> None:
    """One run on these arrays. Raises Fault."""
    bound = prepared.placement.bound
    options = Options(
        races=True, scheduler=scheduler, seed=seed, resident=prepared.resident, step_limit=STEPS, timeout_s=20.0
    )
    execute(bound.program, arrays, bound.params, bound.dims, prepared.placement.grid, options)


def _probe(verdict: Verdict, kernel: Launcher, sample: Sample) -> None:
    """Launches that must be refused: what is left to the launch is really looked at there."""
    _, unit = kernel.analysed({})
    for sizes in _sizes(sample):
        for grid in _grids(sample, unit.program, sizes):
            named = {**arrays_of(unit.program, sample, sizes), **_parameters(unit.program, sizes)}
            try:
                accepted = kernel.ready(named, grid if grid[1:] != (1, 1) else grid[0], {}, None)
            except CheckError:
                return
            except LaunchError:
                continue
            for probe in probes(accepted, named):
                _expect_refusal(verdict, kernel, probe)
            return


def _expect_refusal(verdict: Verdict, kernel: Launcher, probe: Probe) -> None:
    try:
        kernel.ready(probe.named, probe.grid, {}, probe.resident)
    except LaunchError as error:
        if error.kind != probe.kind:
            verdict.complaints.append(f"{probe.obligation} refused as {error.kind}: {error}")
            return
        if probe.spans:
            module, unit = kernel.analysed({})
            places = [module.absolute(unit, span) for span in probe.spans]
            told = error.diagnostic
            if told is None or not any(told.span.start < at.end and at.start < told.span.end for at in places):
                verdict.complaints.append(f"the refusal does not stand at its obligation {probe.obligation}: {error}")
                return
        verdict.refused[probe.kind or probe.obligation] += 1
        return
    verdict.complaints.append(f"{probe.obligation} was not refused")


def _static_promises(
    verdict: Verdict, program: Program, module: modules.Module, unit: modules.Unit, constants: dict[str, int]
) -> None:
    """A promise on an extent that is a number here is broken before anything runs."""
    for promise in program.promises:
        constant = program.constants.get(promise.dim)
        if constant is not None and promise.tile > 0 and constant.value % promise.tile:
            place = module.absolute(unit, promise.key)
            message = f"`{promise.dim}` = {constant.value} is no whole number of {promise.tile}"
            at = " ".join(f"{name}={number}" for name, number in constants.items())
            found = Failure("aligned-broken", message, at, ((place.start, place.end),), ())
            verdict.failures.setdefault("aligned-broken", found)


def _failure(fault: Fault, at: str, module: modules.Module, unit: modules.Unit) -> Failure:
    sites = [site for site in (fault.site, *fault.others) if site is not None]
    places = [module.absolute(unit, span) for site in sites for span in (site.span, *site.calls)]
    tensors = tuple(
        name for name in unit.program.tensors if f"{name}[" in fault.message or f"`{name}`" in fault.message
    )
    return Failure(fault.kind, fault.message, at, tuple((place.start, place.end) for place in places), tensors)


def _shown(constants: dict[str, int], sizes: dict[str, int], grid: Grid, scheduler: str | None, seed: int) -> str:
    numbers = " ".join(f"{name}={number}" for name, number in {**constants, **sizes}.items())
    return f"{numbers} grid={','.join(map(str, grid))}" + (f" {scheduler} seed={seed}" if scheduler else "")


def _difference(results: dict[Grid, Arrays], constants: dict[str, int], sizes: dict[str, int]) -> str | None:
    """Two grids at one size that leave different tensors, beyond rounding. Slots (`P`) and barriers do not count."""
    grids_run = list(results)
    for grid in grids_run[1:]:
        for name, array in results[grid].items():
            first = results[grids_run[0]][name]
            if name not in ("P", "BAR") and not np.allclose(first, array, rtol=1e-4, atol=1e-5, equal_nan=True):
                return f"{name} at {_shown(constants, sizes, grids_run[0], None, 0)} against grid={grid[0]}"
    return None


def _same(one: Arrays, other: Arrays) -> bool:
    return all(np.allclose(one[name], other[name], rtol=1e-4, atol=1e-5, equal_nan=True) for name in one)


def arrays_of(program: Program, sample: Sample, sizes: dict[str, int]) -> Arrays:
    """The tensors of a run, filled as the sample says."""
    arrays: Arrays = {}
    for name, tensor in program.tensors.items():
        shape = tuple(_extent(extent, sizes) for extent in tensor.extents)
        dtype = DTYPES[tensor.dtype]
        fill = sample.fills.get(name, "zeros")
        if fill == "iota":
            arrays[name] = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
        elif fill == "ones":
            arrays[name] = np.ones(shape, dtype)
        elif fill == "large":  # what a condition on data asks for may be more than 1
            arrays[name] = np.full(shape, 100, dtype)
        elif fill.startswith("random"):
            arrays[name] = np.random.default_rng(sum(map(ord, name))).random(shape).astype(dtype)
        else:
            arrays[name] = np.zeros(shape, dtype)
    return arrays


def _parameters(program: Program, sizes: dict[str, int]) -> dict[str, int]:
    return {name: sizes[name] for name in program.params}


def _extent(extent: object, sizes: dict[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    number = getattr(extent, "value", None)
    return number if number is not None else sizes.get(extent.name, 2)  # type: ignore[attr-defined]


def _constants(sample: Sample, kernel: Launcher) -> Iterator[dict[str, int]]:
    """Every point of the search space, without the constants that follow the grid."""
    program = kernel.analysed({})[1].program
    bound = {c.constant.name for c in grids.grid_of(program).constants if c.stride_form}
    names = [name for name in program.constants if name not in bound]
    for values in itertools.product(*(program.constants[name].choices for name in names)):
        yield dict(zip(names, values))


def _sizes(sample: Sample) -> Iterator[dict[str, int]]:
    names = [*sample.sizes, *sample.parameters]
    for values in itertools.product(*sample.sizes.values(), *sample.parameters.values()):
        yield dict(zip(names, values))


def _grids(
    sample: Sample, program: Program, sizes: dict[str, int], counts: Sequence[int] = GRIDS
) -> Iterator[Grid]:
    fixed = [c.constant.value for c in grids.grid_of(program).constants if not c.stride_form]
    if fixed:
        yield fixed[0], 1, 1
    elif sample.persistent:
        yield from ((n, 1, 1) for n in counts)
    else:
        try:
            known = {name: constant.value for name, constant in program.constants.items()} | sizes
            inferred = grids.blocks_at(program, known)
            yield inferred
            if inferred[1:] != (1, 1) and has_barrier(program):  # it is refused, but one number for the grid is not
                yield from ((n, 1, 1) for n in counts)
        except (grids.GridUnknown, grids.GridDisagrees):
            yield from ((n, 1, 1) for n in counts)
            if sample.reads_axis_y:
                yield from PLANES


def _schedules(sample: Sample, grid: Grid) -> Iterator[tuple[str | None, int]]:
    if not sample.uses_atomics:
        yield None, 0
        return
    yield "round-robin", 0
    if grid == (1, 1, 1):
        return
    for seed in range(SEEDS // 4):
        yield "adversarial", seed
    for seed in range(SEEDS):
        yield "random", seed

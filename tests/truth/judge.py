"""What really happens: every sample run on the reference runtime, over grids, sizes, constants and schedules.

A sample *fails* when some run inside its contract ends in a fault. What the launch would refuse (a promise on
a runtime extent, more blocks than cells, arrays that overlap) is outside the contract: it is counted as refused
under the obligation it names and is neither failure nor miss.

Schedules: a kernel without atomics that shows no race under one schedule cannot end differently under another
(every pair of conflicting accesses is ordered by barriers), so one schedule with race detection decides it. A
kernel with atomics runs under round robin, the adversarial scheduler and `SEEDS` random ones.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from phobos.runtime.reference.execute import Options, execute
from phobos.runtime.reference.faults import Fault
from phobos.semantics import grid as grids
from phobos.semantics import module as modules
from phobos.semantics.program import Program, Settings
from tests.truth.generator import Sample

SEEDS = 20
GRIDS = (1, 2, 3, 4, 5)
PLANES = ((1, 2, 1), (2, 2, 1), (3, 2, 1), (2, 3, 1))
STEPS = 60_000

DTYPES = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "f64": np.float64}


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
    """`failures` by kind (none: it never fails); `varies` names two runs whose results differ by the grid."""

    runs: int = 0
    failures: dict[str, Failure] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    varies: str | None = None


def judge(sample: Sample) -> Verdict:
    """Run a sample through everything, until each kind of fault that it can show has most likely been met."""
    verdict = Verdict()
    for constants in _constants(sample):
        settings = Settings(constants=tuple(sorted(constants.items())))
        module = modules.analyse("k.ph", sample.text, settings)
        unit = module.kernels[sample.kernel]
        program = unit.program
        _static_promises(verdict, program, module, unit, constants)
        for sizes, launches in itertools.groupby(_launches(sample, program, verdict), key=lambda launch: launch[0]):
            results: dict[tuple[int, int, int], dict[str, np.ndarray]] = {}
            for _, grid in launches:
                for scheduler, seed in _schedules(sample):
                    verdict.runs += 1
                    try:
                        results[grid] = run(program, sample, sizes, grid, scheduler, seed)
                    except Fault as fault:
                        at = _shown(constants, sizes, grid, scheduler, seed)
                        verdict.failures.setdefault(fault.kind, _failure(fault, at, module, unit))
                        break
            if sample.persistent and not sample.uses_atomics and verdict.varies is None:
                verdict.varies = _difference(results, constants, sizes)
            if any(kind in ("deadlock", "race") for kind in verdict.failures) or len(verdict.failures) > 2:
                return verdict
    return verdict


def _static_promises(
    verdict: Verdict, program: Program, module: modules.Module, unit: modules.Unit, constants: dict[str, int]
) -> None:
    """A promise on an extent that is a number here is broken before anything runs."""
    for promise in program.promises:
        constant = program.constants.get(promise.dim)
        if constant is not None and constant.value % promise.tile:
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


def _shown(
    constants: dict[str, int], sizes: dict[str, int], grid: tuple[int, int, int], scheduler: str | None, seed: int
) -> str:
    numbers = " ".join(f"{name}={number}" for name, number in {**constants, **sizes}.items())
    return f"{numbers} grid={','.join(map(str, grid))}" + (f" {scheduler} seed={seed}" if scheduler else "")


def _difference(
    results: dict[tuple[int, int, int], dict[str, np.ndarray]], constants: dict[str, int], sizes: dict[str, int]
) -> str | None:
    """Two grids at one size that leave different tensors, beyond rounding. Slots (`P`) do not count."""
    grids_run = list(results)
    for grid in grids_run[1:]:
        for name, array in results[grid].items():
            first = results[grids_run[0]][name]
            if name != "P" and not np.allclose(first, array, rtol=1e-4, atol=1e-5, equal_nan=True):
                return f"{name} at {_shown(constants, sizes, grids_run[0], None, 0)} against grid={grid[0]}"
    return None


def run(
    program: Program,
    sample: Sample,
    sizes: dict[str, int],
    grid: tuple[int, int, int],
    scheduler: str | None,
    seed: int,
) -> dict[str, np.ndarray]:
    """One run; gives the stored tensors. Raises Fault."""
    tensors: dict[str, np.ndarray] = {}
    for name, tensor in program.tensors.items():
        shape = tuple(_extent(extent, sizes) for extent in tensor.extents)
        dtype = DTYPES[tensor.dtype]
        fill = sample.fills.get(name, "zeros")
        if fill == "iota":
            array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
        elif fill.startswith("random"):
            array = np.random.default_rng(1).random(shape).astype(dtype)
        else:
            array = np.zeros(shape, dtype)
        tensors[name] = array
    params = {name: sizes[name] for name in program.params}
    dims = {name: sizes.get(name, 2) for name in program.dims}
    execute(
        program, tensors, params, dims, grid,
        Options(races=True, scheduler=scheduler, seed=seed, step_limit=STEPS, timeout_s=20.0),
    )  # fmt: skip
    return tensors


def _extent(extent: object, sizes: dict[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    name = extent.name  # type: ignore[attr-defined]
    number = getattr(extent, "value", None)
    return number if number is not None else sizes.get(name, 2)


def _constants(sample: Sample) -> Iterator[dict[str, int]]:
    module = modules.analyse("k.ph", sample.text)
    program = module.kernels[sample.kernel].program
    names = list(program.constants)
    for values in itertools.product(*(program.constants[name].choices for name in names)):
        yield dict(zip(names, values))


def _launches(
    sample: Sample, program: Program, verdict: Verdict
) -> Iterator[tuple[dict[str, int], tuple[int, int, int]]]:
    names = [*sample.sizes, *sample.parameters]
    choices = [*sample.sizes.values(), *sample.parameters.values()]
    bound = grids.grid_of(program)
    for values in itertools.product(*choices):
        sizes = dict(zip(names, values))
        broken = [p for p in program.promises if p.dim in program.dims and sizes[p.dim] % p.tile]
        if broken:
            verdict.refused["aligned"] += 1
            continue
        for grid in _grids(sample, program, sizes):
            cap = grids.cap_at(program, sizes)
            if cap is not None and grid[0] > cap[0]:
                verdict.refused["grid-at-most"] += 1
                continue
            fixed = [c.constant.value for c in bound.constants if not c.stride_form]
            if fixed and grid[0] != fixed[0]:
                continue
            yield sizes, grid


def _grids(sample: Sample, program: Program, sizes: dict[str, int]) -> Iterator[tuple[int, int, int]]:
    if sample.persistent:
        yield from ((n, 1, 1) for n in GRIDS)
        return
    try:
        yield grids.blocks_at(program, sizes)
    except (grids.GridUnknown, grids.GridDisagrees):
        yield from ((n, 1, 1) for n in GRIDS)
        if sample.reads_axis_y:
            yield from PLANES


def _schedules(sample: Sample) -> Iterator[tuple[str | None, int]]:
    if not sample.uses_atomics:
        yield None, 0
        return
    yield "round-robin", 0
    for seed in range(SEEDS // 4):
        yield "adversarial", seed
    for seed in range(SEEDS):
        yield "random", seed

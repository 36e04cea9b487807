"""Random kernels that never fail, on the card against the reference runtime.

`PHOBOS_TRUTH=N` says how many seeds are tried (default 600). About one in five runs: the others are faulty,
refused, or have several results. Each is compiled in a process of its own pool first.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

import numpy
import pytest

from phobos.codegen import cards
from phobos.errors import CheckError, KernelFault, LaunchError, PhobosError
from phobos.lowering.options import Options
from phobos.runtime import compiling
from phobos.runtime.binding import barrier_tensors
from phobos.runtime.cuda import driver, launch
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.given import Arguments, arguments
from phobos.runtime.kernel import Kernel, Kernels
from tests.truth.generator import generate

pytestmark = pytest.mark.gpu
SEEDS = int(os.environ.get("PHOBOS_TRUTH", "600"))


def compile_only(seed: int, arch: str) -> None:
    """Fill the cache of compiled kernels."""
    sample = generate(seed)
    try:
        kernel = Kernels("<text>", sample.text).one(sample.kernel)
        module, unit = kernel.analysed()
        for multiples in ((), tuple(sorted(unit.program.dims))):
            compiling.build(module, unit, Options(arch=arch, multiples=multiples))
    except PhobosError:
        pass


def one_result(kernel: Kernel, given: Arguments, grid: int | None, atomics: bool) -> dict[str, numpy.ndarray] | None:
    """What the reference gives, None where that depends on the order of blocks. Raises KernelFault for a fault in any.

    Without atomics, a run without a race says that the order does not matter; with them several orders are tried.
    """
    first: dict[str, numpy.ndarray] | None = None
    orders = [(None, 0)] if not atomics else [(None, 0), *(("random", n) for n in range(6)), ("adversarial", 1)]
    for scheduler, seed in orders:
        arrays = {name: array.copy() for name, array in given.arrays.items()}
        kernel.reference(**arrays, **given.numbers, grid=grid, detect="races", scheduler=scheduler, seed=seed)
        if first is None:
            first = arrays
        elif any(not numpy.array_equal(arrays[name], first[name]) for name in arrays):
            return None
    return first


def test_random_kernels_agree_with_the_reference() -> None:
    arch = cards.arch_of(*driver.capability(0))
    with ProcessPoolExecutor(min(12, os.cpu_count() or 1)) as pool:
        list(pool.map(compile_only, range(SEEDS), [arch] * SEEDS, chunksize=8))
    ran = refused = faulty = several = 0
    wrong: list[str] = []
    for seed in range(SEEDS):
        sample = generate(seed)
        kernel = Kernels("<text>", sample.text).one(sample.kernel)
        sizes = {name: values[len(values) // 2] for name, values in sample.sizes.items()}  # whole tiles as a rule
        numbers = {name: values[0] for name, values in sample.parameters.items()}
        names = {**sample.fills, **{n: str(v) for n, v in {**sizes, **numbers}.items()}}
        grid = 5 if sample.persistent else None
        try:
            given = arguments(kernel.analysed()[1].program, names, seed, dict.fromkeys(names, "."), {})
            host = one_result(kernel, given, grid, sample.uses_atomics)
        except (CheckError, LaunchError):
            refused += 1
            continue
        except KernelFault:
            faulty += 1
            continue
        if host is None:
            several += 1
            continue
        card = {name: DeviceArray(array, 0) for name, array in given.arrays.items()}
        try:
            kernel(**card, **given.numbers, grid=grid, timeout=10.0)
            launch.synchronize()
        except (CheckError, LaunchError):
            refused += 1
            continue
        except KernelFault as fault:
            wrong.append(f"seed {seed}: {fault}")
            continue
        ran += 1
        barriers = barrier_tensors(kernel.analysed()[1].program)
        for name, want in host.items():
            if name in barriers:
                continue
            got = card[name].numpy().astype(numpy.float64)
            if not numpy.allclose(got, want.astype(numpy.float64), rtol=1e-3, atol=1e-4, equal_nan=True):
                wrong.append(f"seed {seed}: {name} differs, by up to {numpy.nanmax(numpy.abs(got - want)):.3g}")
                break
    print(
        f"{ran} ran, {len(wrong)} differ; {faulty} fail in the reference, {several} have several results, "
        f"{refused} refused, of {SEEDS}"
    )
    assert not wrong, "\n".join(wrong[:20])
    assert ran > SEEDS // 8  # the generator makes more wrong kernels than right ones

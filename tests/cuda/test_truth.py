"""Random kernels that never fail, on the card against the reference runtime.

`PHOBOS_TRUTH=N` says how many seeds are tried (default 600). About one in five runs: the others are faulty,
refused, or have several results. Seeds are shared out to processes, each with a context of its own on the card.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import numpy
import pytest

from phobos.errors import CheckError, KernelFault, LaunchError, PhobosError
from phobos.runtime.binding import barrier_tensors
from phobos.runtime.cuda import launch
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.given import Arguments, arguments
from phobos.runtime.kernel import Kernel, Kernels
from tests.truth.generator import generate

pytestmark = pytest.mark.gpu
SEEDS = int(os.environ.get("PHOBOS_TRUTH", "600"))


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


def outcome(seed: int) -> tuple[str, str]:
    """What becomes of one seed: `ran`, `differs`, `faulty`, `several` or `refused`, and a sentence where it differs."""
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
        return "refused", ""
    except KernelFault:
        return "faulty", ""
    if host is None:
        return "several", ""
    card = {name: DeviceArray(array, 0) for name, array in given.arrays.items()}
    try:
        kernel(**card, **given.numbers, grid=grid, timeout=10.0)
        launch.synchronize()
    except (CheckError, LaunchError):
        return "refused", ""
    except PhobosError as error:
        return "differs", f"seed {seed}: {error}"
    barriers = barrier_tensors(kernel.analysed()[1].program)
    for name, want in host.items():
        if name in barriers:
            continue
        got = card[name].numpy().astype(numpy.float64)
        if not numpy.allclose(got, want.astype(numpy.float64), rtol=1e-3, atol=1e-4, equal_nan=True):
            return "differs", f"seed {seed}: {name} differs, by up to {numpy.nanmax(numpy.abs(got - want)):.3g}"
    return "ran", ""


def test_random_kernels_agree_with_the_reference() -> None:
    fresh = multiprocessing.get_context("spawn")  # a forked process cannot use the parent's context of the driver
    with ProcessPoolExecutor(min(14, os.cpu_count() or 1), mp_context=fresh) as pool:
        outcomes = list(pool.map(outcome, range(SEEDS), chunksize=16))
    counts = Counter(kind for kind, _ in outcomes)
    wrong = [sentence for kind, sentence in outcomes if kind == "differs"]
    print(
        f"{counts['ran']} ran and agree, {len(wrong)} differ; {counts['faulty']} fail in the reference, "
        f"{counts['several']} have several results, {counts['refused']} refused, of {SEEDS}"
    )
    assert not wrong, "\n".join(wrong[:20])
    assert counts["ran"] > SEEDS // 8  # the generator makes more wrong kernels than right ones

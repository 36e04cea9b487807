"""Random kernels that never fail, on the card against the reference runtime.

`PHOBOS_TRUTH=N` says how many seeds are tried (default 600). About one in five runs: the others are faulty,
refused, or have several results. Seeds are shared out to processes, each with a context of its own on the card.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy
import pytest

from phobos.errors import CheckError, KernelFault, LaunchError
from phobos.runtime.binding import barrier_tensors
from phobos.runtime.cuda import driver, launch
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


_dead = ""  # why this process can use the card no more: a context does not survive some errors


def outcome(work: Callable[[int], tuple[str, str]], seed: int) -> tuple[int, str, str]:
    """The seed, what `work` says becomes of it (or `differs`, `untried`), and a sentence."""
    global _dead
    if _dead:
        return seed, "untried", _dead
    try:
        kind, said = work(seed)
    except driver.DriverError as error:
        _dead = str(error)
        kind, said = "differs", str(error)
    return seed, kind, f"seed {seed}: {said}"


def outcome_of(seed: int) -> tuple[str, str]:
    """`ran`, `differs`, `faulty`, `several` or `refused`, and what differs."""
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
    except KernelFault as fault:
        return "differs", str(fault)
    barriers = barrier_tensors(kernel.analysed()[1].program)
    for name, want in host.items():
        if name in barriers:
            continue
        got = card[name].numpy().astype(numpy.float64)
        if not numpy.allclose(got, want.astype(numpy.float64), rtol=1e-3, atol=1e-4, equal_nan=True):
            return "differs", f"{name} differs, by up to {numpy.nanmax(numpy.abs(got - want)):.3g}"
    return "ran", ""


def over_processes(work: Callable[[int], tuple[str, str]], seeds: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Every seed's outcome. What a process with a dead context left is tried again in fresh ones."""
    fresh = multiprocessing.get_context("spawn")  # a forked process cannot use the parent's context of the driver
    known: dict[int, tuple[str, str]] = {}
    left = list(seeds)
    while left:
        with ProcessPoolExecutor(min(14, os.cpu_count() or 1, len(left)), mp_context=fresh) as pool:
            for seed, kind, said in pool.map(partial(outcome, work), left, chunksize=max(1, min(16, len(left) // 28))):
                known[seed] = kind, said
        again = [seed for seed in left if known[seed][0] == "untried"]
        assert len(again) < len(left)  # each process tries at least one
        left = again
    return known


def test_random_kernels_agree_with_the_reference() -> None:
    known = over_processes(outcome_of, range(SEEDS)).values()
    counts = Counter(kind for kind, _ in known)
    wrong = [said for kind, said in known if kind == "differs"]
    print(
        f"{counts['ran']} ran and agree, {len(wrong)} differ; {counts['faulty']} fail in the reference, "
        f"{counts['several']} have several results, {counts['refused']} refused, of {SEEDS}"
    )
    assert not wrong, "\n".join(wrong[:20])
    assert counts["ran"] > SEEDS // 8  # the generator makes more wrong kernels than right ones

"""Two workers against one: products of matrices on shards, and tuning. What is moved is stated apart.

With two GPUs each worker has one; without, two processes of the reference runtime share this machine's cores.
The inputs lie in the workers' memory, and the results stay there. Usage: python benchmarks/cluster.py [--cpu] [--quick]
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy
from figures import Figure, finish, machine, medians
from products import product

from phobos.runtime.cluster.connect import Cluster, cluster, visible_cards
from phobos.runtime.cluster.executor import Workers
from phobos.runtime.kernel import Kernel, kernel
from phobos.runtime.tuning.ahead import Ahead, ahead
from phobos.runtime.tuning.executor import Processes
from phobos.runtime.tuning.judging import Task, judge
from phobos.runtime.tuning.problem import Problem, judged_at
from phobos.runtime.tuning.space import space
from phobos.runtime.tuning.tuning import How, machine_of, tune

SHARDS = 4
REPEATS = 5
FLOOR = 1.8  # times as fast on two as on one
GEMM = product("@launch(256)", "@dynshared", deep=(16,))
HALVES = product("@tensorcore", "@launch(256)", "@dynshared", dtype="f16", deep=(64,))
SWEPT = product("@launch(256)", rows=(64, 128), columns=(64, 128), deep=(8, 16, 32))


@dataclass(frozen=True)
class Product:
    name: str
    text: str
    dtype: str
    sizes: tuple[int, int, int]  # M, N, K


@dataclass(frozen=True)
class Work:
    """What is measured on a device."""

    products: tuple[Product, ...]
    swept: tuple[int, int, int]
    groups: tuple[int, ...]
    schedules: tuple[str | None, ...]


ON_GPU = Work(
    (
        Product("f32", GEMM, "float32", (65536, 8192, 16384)), Product("f32", GEMM, "float32", (131072, 8192, 16384)),
        Product("f16", HALVES, "float16", (131072, 8192, 16384)),
        Product("f16", HALVES, "float16", (262144, 8192, 16384)),
    ),
    (4096, 4096, 4096), (1, 8), (None, "persistent-interleaved", "persistent-blocked"),
)  # fmt: skip
QUICK_ON_GPU = replace(ON_GPU, products=ON_GPU.products[1:2], schedules=(None,))
ON_CPU = Work((Product("f32", GEMM, "float32", (4096, 1024, 1024)),), (512, 512, 256), (1,), (None,))
QUICK_ON_CPU = Work((Product("f32", GEMM, "float32", (1024, 256, 256)),), (256, 256, 128), (1,), (None,))


# --- on a worker ------------------------------------------------------------------------------------------------


def filled(shape: tuple[int, int], seed: int, dtype: str, on_gpu: bool) -> Any:
    """Numbers from 0 to 1; zeros for seed 0."""
    if on_gpu:
        import cupy as there
    else:
        import numpy as there
    if not seed:
        return there.zeros(shape, dtype)
    return there.random.default_rng(seed).random(shape, dtype=numpy.float32).astype(dtype, copy=False)


def on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array


# --- the product ------------------------------------------------------------------------------------------------


def placed(client: Any, homes: list[str], shape: tuple[int, int], seed: int, dtype: str, on_gpu: bool) -> Any:
    """A dask array of as many chunks as `homes`, each made in the memory of its home and kept there."""
    import dask
    import dask.array as da
    from distributed import wait

    meta = numpy.empty((0, 0), dtype)
    if on_gpu:
        import cupy

        meta = cupy.empty((0, 0), dtype)
    rows = shape[0] // len(homes)
    parts = []
    for at, home in enumerate(homes):
        made = dask.delayed(filled, pure=False)((rows, shape[1]), seed and seed + at, dtype, on_gpu)
        array = da.from_delayed(made, (rows, shape[1]), meta=meta)
        parts.append(client.persist(array, workers=[home], optimize_graph=False))
    wait(parts)
    together = client.persist(da.concatenate(parts, axis=0)) if len(parts) > 1 else parts[0]
    wait(together)
    return together


def product_on(found: Cluster, one: Product, on_gpu: bool) -> dict[str, float]:
    """Seconds of the product with everything in place, from the call of `map` to the last cell in a worker's memory;
    and beside it seconds of what is moved."""
    from distributed import futures_of, wait

    client = found.client
    m, n, k = one.sizes
    workers = [worker.address for worker in found.workers()]
    homes = [workers[at * len(workers) // SHARDS] for at in range(SHARDS)]
    a = placed(client, homes, (m, k), 1, one.dtype, on_gpu)
    b = placed(client, workers[:1], (k, n), 99, one.dtype, on_gpu)
    c = placed(client, homes, (m, n), 0, one.dtype, on_gpu)
    made = kernel(one.text)

    def mapped() -> Any:
        return made.map(client, {"A": a, "B": b, "C": c}, shard="M", parts=SHARDS)["C"]

    def once() -> Any:
        result = client.persist(mapped())
        wait(result)
        return result

    begun = perf_counter()
    result = once()  # compiles, and takes B to every worker, where it stays
    first = perf_counter() - begun
    del result
    seconds = medians([once], REPEATS)[0]
    graph = medians([mapped], 3)[0]
    result, spent = streamed(client, once)
    homes_of = {key: len(where) for key, where in client.who_has(futures_of(b)).items()}
    begun = perf_counter()
    shard = client.compute(result[: m // SHARDS].map_blocks(on_host, meta=numpy.empty((0, 0), one.dtype))).result()
    back = perf_counter() - begun
    left, right = (client.compute(part.map_blocks(on_host, meta=numpy.empty((0, 0), one.dtype))).result()
                   for part in (a[:64], b[:, :256]))  # fmt: skip
    wanted = left.astype(numpy.float64) @ right.astype(numpy.float64)
    wrong = float(numpy.abs(shard[:64, :256] - wanted).max() / numpy.abs(wanted).max())
    if not wrong < 2e-3:
        raise AssertionError(f"{one.name}: wrong by {wrong}")
    return {
        "seconds": seconds, "tflops": 2e-12 * m * n * k / seconds, "graph_s": graph, "first_s": first,
        "one_shard_to_host_s": back, "copies_of_b": min(homes_of.values()), "relative_error": wrong, **spent,
    }  # fmt: skip


def streamed(client: Any, work: Any) -> tuple[Any, dict[str, float]]:
    """What `work` gives, and what the workers were doing meanwhile: seconds of all of them together, by action."""
    from distributed import get_task_stream

    with get_task_stream(client) as stream:
        result = work()
    spent: dict[str, float] = defaultdict(float)
    spent["transfer_s"] = 0.0
    for task in stream.data:
        for step in task["startstops"]:
            spent[f"{step['action']}_s"] += step["stop"] - step["start"]
    spent["tasks"] = len(stream.data)
    return result, dict(spent)


# --- tuning -----------------------------------------------------------------------------------------------------


def swept(work: Work, device: str) -> tuple[Kernel, Problem, list[Any]]:
    made = kernel(SWEPT)
    program = made.analysed()[1].program
    variants = list(space(program, {}, work.schedules, work.groups))
    dims = dict(zip("MNK", work.swept, strict=True))
    names = {"A": "random:seed=1", "B": "random:seed=2", "C": "zeros"}
    there = machine_of(device)
    problem = Problem(
        made.path, made.text, made.name, names, {}, 0, dims, dims, {}, variants[0], device, there.arch,
        there.multiprocessors, repeat=20,
    )  # fmt: skip
    return made, judged_at(problem, [made.analysed(problem.constants(v))[1].program for v in variants]), variants


def compiled(problem: Problem, variants: list[Any]) -> tuple[list[Task], float]:
    """The tasks of all variants, compiled, and the seconds that it took."""
    if not problem.arch:
        return [Task(variant) for variant in variants], 0.0
    compilers = Processes(os.cpu_count() or 1)
    begun = perf_counter()
    made = {variant.label: found for variant, found in compilers.map(ahead, problem, iter(variants), 120.0)}
    seconds = perf_counter() - begun
    compilers.close()
    return [Task(v, None, one.lent) for v in variants if isinstance(one := made[v.label], Ahead)], seconds


def sweep(found: Cluster, problem: Problem, tasks: list[Task]) -> dict[str, float]:
    """Seconds in which all variants were judged and timed, after they were compiled."""
    executor = Workers(found)
    list(executor.map(judge, problem, iter(tasks[: len(found.workers())]), 90.0))  # they load what they need
    begun = perf_counter()
    rows = [row for _, row in executor.map(judge, problem, iter(tasks), 90.0)]
    seconds = perf_counter() - begun
    executor.close()
    timed = [ms for row in rows if (ms := getattr(row, "elapsed_ms", None))]
    return {"seconds": seconds, "variants": len(rows), "timed": len(timed), "best_ms": min(timed)}


def tuned(found: Cluster, made: Kernel, problem: Problem, work: Work) -> dict[str, float]:
    """Seconds of a tuning from beginning to end: variants compiled, judged and timed, and dropped where slower."""
    from phobos.runtime.given import arguments

    program = made.analysed()[1].program
    names = {**problem.names, **{name: str(extent) for name, extent in problem.dims.items()}}
    given = arguments(program, names, 0, {}, {})
    bound = made.bound((), {**given.arrays, **given.numbers}, {})
    how = How(
        l2_groups=work.groups, schedules=None if None in work.schedules and len(work.schedules) > 1 else ("flat",),
        fresh=True, executor=Workers(found), machine=machine_of(problem.device),
    )  # fmt: skip
    with no_cache():
        done = tune(made, bound, problem.names, {}, {}, problem.device, how)
    timed = [row for row in done.rows if row.status in ("ok", "slower")]
    return {"seconds": done.seconds, "variants": len(done.rows), "timed": len(timed)}


@contextmanager
def no_cache() -> Iterator[None]:
    """Nothing was compiled before."""
    before = os.environ.get("PHOBOS_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PHOBOS_CACHE"] = folder
        try:
            yield
        finally:
            os.environ.pop("PHOBOS_CACHE")
            if before is not None:
                os.environ["PHOBOS_CACHE"] = before


# --- all of it --------------------------------------------------------------------------------------------------


def said(what: str, numbers: dict[str, float]) -> None:
    print(f"{what}: " + "  ".join(f"{name} {number:.4g}" for name, number in numbers.items()), flush=True)


def measured(work: Work, on_gpu: bool) -> Iterator[tuple[int, str, dict[str, float]]]:
    device = "cuda:0" if on_gpu else "cpu"
    made, problem, variants = swept(work, device)
    tasks, seconds = compiled(problem, variants)
    print(f"{len(tasks)} of {len(variants)} variants compiled in {seconds:.1f} s", flush=True)
    for count in (1, 2):
        with cluster(f"local:{count}") as found, found.client.as_current():
            for one in work.products:
                yield count, f"product {one.name} {' x '.join(map(str, one.sizes))}", product_on(found, one, on_gpu)
            yield count, "variants judged and timed", sweep(found, problem, tasks)
            yield count, "tuning, compilation included", tuned(found, made, problem, work)


def main() -> None:
    on_gpu = "--cpu" not in sys.argv and len(visible_cards()) > 1
    if not on_gpu and os.environ.get("CUDA_VISIBLE_DEVICES") != "":
        # Once its driver is up a process cannot look away from a card any more.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os.execv(sys.executable, [sys.executable, *sys.argv])
    quick = "--quick" in sys.argv
    work = (QUICK_ON_GPU if quick else ON_GPU) if on_gpu else QUICK_ON_CPU if quick else ON_CPU
    found: dict[str, dict[int, dict[str, float]]] = defaultdict(dict)
    for count, what, numbers in measured(work, on_gpu):
        found[what][count] = numbers
        said(f"{what}, on {count}", numbers)
    figures = []
    for what, by in found.items():
        one, two = by[1]["seconds"], by[2]["seconds"]
        print(f"{what}: {one / two:.2f} times as fast on 2 as on 1")
        figures.append(Figure(f"{what}, on 1", one, "s"))
        # The floor is for cards: two processes of one processor share its memory and its cores with everything else.
        figures.append(Figure(f"{what}, on 2", two, "s", one / two, "on 1", FLOOR if on_gpu else None, at_most=False))
        for name in ("first_s", "transfer_s", "one_shard_to_host_s"):
            if name in by[2]:
                figures.append(Figure(f"{what}, on 2: {name.removesuffix('_s').replace('_', ' ')}", by[2][name], "s"))
    where = machine()
    if on_gpu:
        from gpu_common import machine as of_gpu

        where = of_gpu()
    finish(f"Two {'GPUs' if on_gpu else 'processes of the reference runtime'} against one", figures, where)


if __name__ == "__main__":
    main()

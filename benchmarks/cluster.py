"""Two GPUs against one: a product of matrices on shards, and a sweep of variants. Transfers are stated apart.
Usage: python benchmarks/cluster.py [--json FILE] [--gpus N]"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import dask
import dask.array as da
import numpy
from distributed import futures_of, wait

from phobos.runtime.cluster.connect import Cluster, cluster, visible_cards
from phobos.runtime.cluster.executor import Workers
from phobos.runtime.kernel import Kernels, kernel
from phobos.runtime.tuning.ahead import ahead, cubins
from phobos.runtime.tuning.executor import Processes
from phobos.runtime.tuning.judging import Task, judge
from phobos.runtime.tuning.problem import Problem, judged_at
from phobos.runtime.tuning.space import space
from phobos.runtime.tuning.tuning import machine_of

M, N, K = 65536, 8192, 16384
SHARDS = 4
REPEATS = 3
GEMM = """
@launch(256)
@dynshared
@autotune(BM in [128], BN in [128], BK in [16])
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  let row = ctx.block.x * BM
  let column = ctx.block.y * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {
    acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
  }
  C[row :+ BM, column :+ BN] = acc
}
"""
SWEPT = """
@launch(256)
@autotune(BM in [64, 128], BN in [64, 128], BK in [8, 16])
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  let row = ctx.block.x * BM
  let column = ctx.block.y * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {
    acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
  }
  C[row :+ BM, column :+ BN] = acc
}
"""


def filled(shape: tuple[int, int], seed: int) -> Any:
    """On a worker."""
    import cupy

    return cupy.random.default_rng(seed).random(shape, dtype=numpy.float32)


def zeros(shape: tuple[int, int]) -> Any:
    import cupy

    return cupy.zeros(shape, numpy.float32)


def synchronized(array: Any) -> float:
    """On a worker: a number that is there when the array is."""
    import cupy

    total = float(array.ravel()[:: max(1, array.size // 1000)].sum())
    cupy.cuda.Device().synchronize()
    return total


def product(found: Cluster) -> dict[str, float]:
    """Seconds of the product with everything in place, and of what brings it there."""
    import cupy

    client, meta = found.client, cupy.empty((0, 0), numpy.float32)
    workers = [worker.address for worker in found.workers()]
    rows = M // SHARDS
    homes = [workers[at * len(workers) // SHARDS] for at in range(SHARDS)]
    a = [client.submit(filled, (rows, K), at, workers=[home], pure=False) for at, home in enumerate(homes)]
    c = [client.submit(zeros, (rows, N), workers=[home], pure=False) for home in homes]
    b = client.submit(filled, (K, N), 99, workers=workers[:1], pure=False)
    wait([*a, *c, b])

    def array(futures: list[Any], width: int) -> Any:
        parts = [da.from_delayed(dask.delayed(f), (rows, width), meta=meta) for f in futures]
        return da.concatenate(parts, axis=0)

    # The very key that the shards depend on lies on every worker: another name for it would be fetched again.
    whole = client.persist(da.from_delayed(dask.delayed(b), (K, N), meta=meta))
    wait(whole)
    begun = perf_counter()
    if len(workers) > 1:
        client.replicate(futures_of(whole))
    copied = perf_counter() - begun
    made = kernel(GEMM)
    times: list[float] = []
    for turn in range(REPEATS + 1):
        arrays = {"A": array(a, K), "B": whole, "C": array(c, N)}
        result = made.map(client, arrays, shard="M", parts=SHARDS)["C"]
        begun = perf_counter()
        result = client.persist(result)
        wait(result)
        if turn:  # the first compiles
            times.append(perf_counter() - begun)
    begun = perf_counter()
    cells = client.compute(result[:rows].map_blocks(lambda part: part.get(), meta=numpy.empty((0, 0), numpy.float32)))
    first = cells.result()
    back = perf_counter() - begun
    left = client.submit(lambda part: part[:64].get(), a[0]).result()
    right = client.submit(lambda part: part[:, :256].get(), b).result()
    wanted = left.astype(numpy.float64) @ right.astype(numpy.float64)
    wrong = float(numpy.abs(first[:64, :256] - wanted).max() / numpy.abs(wanted).max())
    return {
        "seconds": median(times), "tflops": 2e-12 * M * N * K / median(times), "replicate_b_s": copied,
        "one_shard_back_s": back, "relative_error": wrong,
    }  # fmt: skip


def problem_of(device: str) -> tuple[Problem, list[Any]]:
    made = Kernels("swept.ph", SWEPT).one()
    program = made.analysed()[1].program
    variants = list(space(program, {}))
    dims = {"M": 2048, "N": 2048, "K": 2048}
    names = {"A": "random:seed=1", "B": "random:seed=2", "C": "zeros"}
    machine = machine_of(device)
    problem = Problem(
        made.path, made.text, made.name, names, {}, 0, dims, dims, {}, variants[0], device, machine.arch,
        machine.multiprocessors, repeat=20,
    )  # fmt: skip
    return judged_at(problem, [made.analysed(problem.constants(v))[1].program for v in variants]), variants


def sweep(found: Cluster, problem: Problem, variants: list[Any]) -> dict[str, float]:
    """Seconds in which all variants were judged and timed, after they were compiled."""
    executor = Workers(found, cubins)
    first = variants[: len(found.workers())]
    list(executor.map(judge, problem, iter([Task(v) for v in first]), 90.0))  # they load what they need
    begun = perf_counter()
    rows = [row for _, row in executor.map(judge, problem, iter([Task(v) for v in variants]), 90.0)]
    seconds = perf_counter() - begun
    executor.close()
    timed = [row.elapsed_ms for row in rows if getattr(row, "elapsed_ms", None)]
    return {"seconds": seconds, "variants": len(rows), "timed": len(timed), "best_ms": min(timed)}


def said(what: str, numbers: dict[str, float]) -> None:
    print(f"{what}: " + "  ".join(f"{name} {number:.4g}" for name, number in numbers.items()), flush=True)


def main() -> None:
    cards = len(visible_cards())
    most = int(sys.argv[sys.argv.index("--gpus") + 1]) if "--gpus" in sys.argv else cards
    found: dict[str, Any] = {}
    problem, variants = problem_of("cuda:0")
    compilers = Processes(8)
    begun = perf_counter()
    list(compilers.map(ahead, problem, iter(variants), 120.0))
    compilers.close()
    found["compile_s"] = perf_counter() - begun
    print(f"{len(variants)} variants compiled once in {found['compile_s']:.1f} s")
    for count in range(1, most + 1):
        with cluster(f"local:{count}") as workers, workers.client.as_current():
            found[f"product on {count}"] = one = product(workers)
            said(f"product on {count}", one)
            found[f"sweep on {count}"] = one = sweep(workers, problem, variants)
            said(f"sweep on {count}", one)
    if most > 1:
        for what in ("product", "sweep"):
            gain = found[f"{what} on 1"]["seconds"] / found[f"{what} on {most}"]["seconds"]
            found[f"{what} gain"] = gain
            print(f"{what}: {gain:.2f} times as fast on {most} as on 1")
    if "--json" in sys.argv:
        Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

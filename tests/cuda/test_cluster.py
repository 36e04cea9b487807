"""Shards and variants on workers that have a GPU each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from phobos.cli import main
from phobos.runtime.cluster.connect import Cluster, cluster, visible_cards
from phobos.runtime.cluster.executor import Workers
from phobos.runtime.cluster.running import collected
from phobos.runtime.cluster.shards import sharded
from phobos.runtime.cuda import host
from phobos.runtime.kernel import kernel
from phobos.runtime.options import LaunchOptions
from phobos.runtime.tuning.ahead import ahead
from phobos.runtime.tuning.judging import Task, judge
from phobos.runtime.tuning.problem import Problem
from phobos.runtime.tuning.space import space
from tests.cluster.test_cuts import GEMM, GUARDED, PROMISED, SAXPY, STENCIL, TURNED, WIDE, arguments
from tests.tune.support import ROWS

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def workers() -> Iterator[Cluster]:
    with cluster("local") as found:
        yield found


def test_a_worker_has_a_card_of_its_own(workers: Cluster) -> None:
    found = workers.workers()
    assert len(found) == len(visible_cards()) == len({worker.gpu for worker in found})


@pytest.mark.parametrize("text, sizes, dim", [
    (SAXPY, {"N": 100_003}, "N"),
    (GEMM, {"M": 515, "N": 300, "K": 77}, "M"), (GEMM, {"M": 300, "N": 515, "K": 77}, "N"),
    (TURNED, {"M": 40, "N": 1000}, "N"), (STENCIL, {"N": 2003, "M": 64}, "N"), (WIDE, {"N": 1001}, "N"),
    (GUARDED, {"N": 1003, "K": 3}, "N"), (PROMISED, {"N": 2400}, "N"),
])  # fmt: skip
def test_shards_are_the_whole_bit_for_bit(workers: Cluster, text: str, sizes: dict[str, int], dim: str) -> None:
    arrays, numbers = arguments(text, sizes)
    made = kernel(text)
    whole = host.run(made, made.bound((), {**arrays, **numbers}, {}), LaunchOptions(), "cuda:0")
    for parts in (1, 2, 5):
        got = collected(workers.client, sharded(made, arrays, numbers, dim, parts, LaunchOptions(timeout=20.0)))
        for name, cells in got.items():
            assert cells.tobytes() == whole.arrays[name].tobytes(), (name, parts)


def test_chunks_that_lie_on_the_card(workers: Cluster, cupy: Any) -> None:
    import dask.array as da

    made = kernel(STENCIL)
    arrays, _ = arguments(STENCIL, {"N": 2003, "M": 64})
    whole = host.run(made, made.bound((), dict(arrays), {}), LaunchOptions(), "cuda:0").arrays["Y"]
    chunks = {
        name: da.from_array(array, chunks=(500, 64)).map_blocks(_there, meta=cupy.empty((0, 0), numpy.float32))
        for name, array in arrays.items()
    }
    found = made.map(workers.client, chunks, shard="N", parts=4)["Y"]
    assert type(found._meta).__module__.startswith("cupy")
    got = workers.client.compute(found.map_blocks(_here, meta=numpy.empty((0, 0), numpy.float32))).result()
    assert got.tobytes() == whole.tobytes()


def _there(array: Any) -> Any:
    import cupy

    return cupy.asarray(array)


def _here(array: Any) -> Any:
    return array.get()


TILED = ROWS.replace("[4, 8]", "[8, 16]")


def another_machine(folder: str) -> int:
    """On a worker: nothing was compiled here, and nothing can be."""
    from phobos.codegen import cache, nvrtc
    from phobos.runtime.cuda import loading

    def refuses(*given: Any) -> Any:
        raise RuntimeError("compiled on a worker")

    os.environ["PHOBOS_CACHE"] = folder
    cache._lent.clear()
    loading._loaded.clear()
    nvrtc.compile_text = refuses
    return os.getpid()


def test_variants_are_compiled_here_and_never_on_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: Cluster
) -> None:
    made = kernel(TILED)
    program = made.analysed()[1].program
    variants = [v for v in space(program, {}, (None, "persistent-interleaved"), (1, 4)) if v.constants[0][1] == 8]
    variants += [v for v in space(program, {}, (None,), (1,)) if v.constants[0][1] == 16]
    found = alone.workers()[0].machine
    dims = {"M": 2000, "N": 3200}
    problem = Problem(
        made.path, TILED, made.name, {"X": "iota", "Y": "zeros"}, {}, 0, dims, {"M": 16, "N": 16}, {}, variants[0],
        "cuda:0", found.arch, found.multiprocessors, repeat=3,
    )  # fmt: skip
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "here"))
    lent = {variant.label: ahead(problem, variant).lent for variant in variants}
    processes = set(alone.client.run(another_machine, str(tmp_path / "there")).values())
    assert os.getpid() not in processes
    executor = Workers(alone)
    tasks = [Task(variant, None, lent[variant.label]) for variant in variants]
    rows = [row for _, row in executor.map(judge, problem, iter(tasks), 60.0)]
    assert {row.status for row in rows} == {"ok"} and len(rows) == len(variants) == 5, rows
    alone.client.run(another_machine, str(tmp_path / "there"))
    ((_, row),) = executor.map(judge, problem, iter([Task(variants[0])]), 60.0)
    assert row.kind == "failed" and "compiled on a worker" in row.why
    executor.close()


@pytest.fixture
def alone() -> Iterator[Cluster]:
    with cluster("local:1") as found:
        yield found


def test_tuning_on_workers(workers: Cluster, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path))
    arguments = ["tune", str(ROOT / "examples/saxpy.ph"), "--set", "N=1048576", "--json"]
    assert main([*arguments, "--cluster", workers.address]) == 0
    there = capsys.readouterr().out
    assert main(arguments) == 0
    here = capsys.readouterr().out
    import json

    one, other = json.loads(there), json.loads(here)
    assert one["best"] is not None and one["kept"] == other["kept"] and one["card"] == other["card"]
    assert other["from_disk"] == len(one["rows"])

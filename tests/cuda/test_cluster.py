"""Shards and variants on workers that have a GPU each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from phobos.cli import main
from phobos.runtime.cluster.connect import Cluster, cluster, visible_cards
from phobos.runtime.cluster.running import collected
from phobos.runtime.cluster.shards import sharded
from phobos.runtime.cuda import host
from phobos.runtime.kernel import LaunchOptions, kernel
from tests.cluster.test_cuts import GEMM, GUARDED, PROMISED, SAXPY, STENCIL, TURNED, WIDE, arguments

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

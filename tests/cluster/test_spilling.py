"""Workers with less memory than all results together, and with less than other work leaves them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from phobos.errors import LaunchError
from phobos.runtime.cluster import connect, waiting
from phobos.runtime.cluster.connect import Cluster
from phobos.runtime.cluster.running import collected
from phobos.runtime.cluster.shards import sharded
from phobos.runtime.kernel import kernel
from phobos.runtime.options import LaunchOptions
from tests.cluster.test_cuts import SAXPY

dask = pytest.importorskip("dask")

CELLS = 64 * 250_000
FULL = """
import resource


def dask_setup(worker):
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # as if the disk were full
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Cluster]:
    """One worker that may hold 180 MB, with no disk to spill to."""
    full, folder = tmp_path / "full.py", tmp_path / "spill"
    full.write_text(FULL)
    folder.mkdir()
    settings = {"temporary-directory": str(folder), "distributed.worker.preload": [str(full)]}
    with dask.config.set(settings), connect._local(1, memory="180MB") as found:
        yield found


@pytest.mark.skipif(sys.platform == "win32", reason="a limit of files is a matter of POSIX")
def test_results_need_no_room_on_workers_and_where_there_is_none_the_folder_is_named(
    small: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, array in (("X", numpy.arange(CELLS, dtype=numpy.float32)), ("Y", numpy.ones(CELLS, numpy.float32))):
        numpy.save(tmp_path / f"{name}.npy", array)
    arrays = {name: numpy.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("X", "Y")}
    cut = sharded(kernel(SAXPY), arrays, {"a": 2.0}, "N", 40, LaunchOptions())
    found = collected(small.client, cut)["Y"]  # 64 MB, beside a process that itself takes as much
    numpy.testing.assert_array_equal(found[::1000], arrays["X"][::1000] * numpy.float32(2) + arrays["Y"][::1000])

    monkeypatch.setattr(waiting, "PAUSED_S", 3.0)
    others = [small.client.submit(numpy.ones, 4_000_000, numpy.uint8, key=f"other-{n}") for n in range(40)]
    cut = sharded(kernel(SAXPY), arrays, {"a": 2.0}, "N", 40, LaunchOptions())
    with pytest.raises(LaunchError, match=r"cannot spill to disk: is there room in .*spill") as error:
        collected(small.client, cut)
    assert "\n" not in str(error.value)
    del others

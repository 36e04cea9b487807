"""Workers with less memory than their results: spilled to disk where there is room, ended with a word where not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy
import pytest

from phobos.errors import LaunchError
from phobos.runtime.cluster import connect, waiting
from phobos.runtime.cluster.running import collected
from phobos.runtime.cluster.shards import sharded
from phobos.runtime.kernel import LaunchOptions, kernel
from tests.cluster.test_cuts import SAXPY

dask = pytest.importorskip("dask")

CELLS = 64 * 400_000
FULL = """
import resource


def dask_setup(worker):
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # as if the disk were full
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a limit of files is a matter of POSIX")
def test_a_full_disk_ends_the_run_and_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PAUSED_S", 4.0)
    full, folder = tmp_path / "full.py", tmp_path / "spill"
    full.write_text(FULL)
    folder.mkdir()
    for name, array in (("X", numpy.arange(CELLS, dtype=numpy.float32)), ("Y", numpy.ones(CELLS, numpy.float32))):
        numpy.save(tmp_path / f"{name}.npy", array)
    arrays = {name: numpy.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("X", "Y")}
    cut = sharded(kernel(SAXPY), arrays, {"a": 2.0}, "N", 40, LaunchOptions())
    settings = {"temporary-directory": str(folder), "distributed.worker.preload": [str(full)]}
    words = r"cannot spill to disk: is there room in .*spill"
    local = connect._local(1, memory="180MB")
    with dask.config.set(settings), local as found, pytest.raises(LaunchError, match=words) as error:
        collected(found.client, cut)
    assert "\n" not in str(error.value)

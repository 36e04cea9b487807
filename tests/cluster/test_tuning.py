"""Variants tried on workers of this machine: lost workers, hung ones, the same winner; and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from phobos.cli import main
from phobos.errors import InputError
from phobos.runtime.cluster import tuning
from phobos.runtime.cluster.connect import Cluster, Worker, cluster
from phobos.runtime.cluster.executor import Workers
from phobos.runtime.tuning.executor import Lost
from phobos.runtime.tuning.tuning import Machine
from tests.command import HEARS_CTRL_C

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
FILL = """
// run: kernel=fill N=5000 X=zeros
@autotune(T in [64, 128, 256])
kernel fill(X: tensor<f32>[N]) {
  let s = ctx.block.x * T
  X[s :+ T] = X[s :+ T] + 1.0
}
"""


def deed(shared: str, task: str) -> Any:
    """What the tests let a worker do; `shared` is a folder."""
    if task.startswith("dies"):
        time.sleep(0.5)  # dask gives up a worker whose process ends while it is still being started
    if task == "dies once" and not (Path(shared) / "died").exists():
        (Path(shared) / "died").touch()
        os._exit(3)
    if task == "dies":
        with (Path(shared) / "deaths").open("a") as file:
            file.write("x")
        os._exit(3)
    if task == "hangs":
        time.sleep(600)
    if task == "raises":
        raise ValueError("no")
    return task.upper()


def test_what_becomes_of_tasks_whose_workers_are_lost(tmp_path: Path) -> None:
    tasks = ["a", "b", "hangs", "raises", "dies once", "dies"]  # a worker that has answered has no time to load
    with cluster("local:2") as found:
        workers = Workers(found)
        got = dict(workers.map(deed, str(tmp_path), iter(tasks), 2.0))
        workers.close()
    assert set(got) == set(tasks)
    assert (got["a"], got["b"], got["dies once"]) == ("A", "B", "DIES ONCE")
    kinds = {task: lost.kind for task, lost in got.items() if isinstance(lost, Lost)}
    assert kinds == {"raises": "failed", "dies": "crashed", "hangs": "hung"}
    assert got["dies"].why == "its worker ended 2 times while it ran"
    assert (tmp_path / "deaths").read_text() == "xx"


def remembers(shared: list[str], task: str) -> tuple[int, int]:
    shared.append(task)
    return os.getpid(), len(shared)


def test_what_tasks_share_is_one_object_on_each_worker(two: Cluster) -> None:
    """So that a judge computes once what all variants are compared with."""
    workers = Workers(two)
    said = sorted(found for _, found in workers.map(remembers, ["all"], iter("abcdef"), 30.0))
    workers.close()
    by = {pid: [count for each, count in said if each == pid] for pid, _ in said}
    assert len(by) == 2 and all(counts == [counts[0] + n for n in range(len(counts))] for counts in by.values()), said


def tuned(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    assert main(["tune", *arguments, "--json"]) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def test_the_same_rows_and_the_same_file_of_winners(
    two: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "fill.ph"
    file.write_text(FILL)
    there, told = tuned([str(file), "--cluster", two.address, "--device", "cpu", "--repeat", "3"], capsys)
    assert f"tuning on the cluster {two.address}: 2 workers, reference runtime; dashboard http://" in told
    assert sorted(row["variant"]["constants"]["T"] for row in there["rows"]) == [64, 128, 256]
    assert all(row["status"] in ("ok", "slower") for row in there["rows"]) and there["best"] is not None
    here, _ = tuned([str(file), "--device", "cpu", "--repeat", "3"], capsys)
    assert here["kept"] == there["kept"] and Path(there["kept"]).exists()
    assert here["card"] == there["card"] and here["from_disk"] == 3  # what the cluster measured counts here


def test_workers_that_are_not_alike_are_refused() -> None:
    one, other = Machine("", 1, "one card"), Machine("", 1, "another")
    with pytest.raises(InputError, match=r"workers a \(one card\) and b \(another\) are not alike"):
        tuning._one([Worker("a", "", "", one, one), Worker("b", "", "", other, other)], on_gpu=True)


def processes_of(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(words[1]) == parent and words[0] != "Z":
                found += [int(entry.name), *processes_of(int(entry.name))]
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_ctrl_c_leaves_no_worker_and_no_half_file(tmp_path: Path) -> None:
    a = tmp_path / "c.npy"
    command = [
        *HEARS_CTRL_C, sys.executable, "-m", "phobos", "run", "examples/gemm.ph", "--cluster", "local:2",
        "--shard", "M=64", "--set", "M=65536", "--set", "N=256", "--set", "K=512", "--arg", "A=zeros",
        "--out", f"C={a}",
    ]  # fmt: skip
    started = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(processes_of(started.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(3)
    children = processes_of(started.pid)
    assert children and started.poll() is None, started.communicate()
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does it: to all of them
    out, err = started.communicate(timeout=60)
    assert started.returncode == 130, (out, err)
    assert "Traceback" not in err and "Traceback" not in out, err
    assert not a.exists() and not list(tmp_path.glob(".phobos-*"))
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in children) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]

"""Kernels on shards, on workers of this machine: results of the whole, files, refusals, workers that end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy
import pytest

from phobos.cli import main
from phobos.errors import InputError, KernelFault, LaunchError
from phobos.runtime.cluster import connect
from phobos.runtime.cluster.connect import Cluster, Worker
from phobos.runtime.cluster.running import collected
from phobos.runtime.cluster.shards import demand_alike, sharded
from phobos.runtime.kernel import kernel, load
from phobos.runtime.options import LaunchOptions
from tests.cluster.test_cuts import GUARDED, HALVES, SAXPY, STENCIL, WIDE, arguments

da = pytest.importorskip("dask.array")

ROOT = Path(__file__).resolve().parents[2]


def whole(made: Any, arrays: dict[str, numpy.ndarray], numbers: dict[str, float]) -> dict[str, numpy.ndarray]:
    wanted = {name: array.copy() for name, array in arrays.items()}
    made.reference(**wanted, **numbers)
    return wanted


@pytest.mark.parametrize("text, sizes, dim, parts", [
    (STENCIL, {"N": 203, "M": 20}, "N", 5), (WIDE, {"N": 61}, "N", 4), (GUARDED, {"N": 100, "K": 3}, "N", 3),
    (HALVES, {"N": 333}, "N", 4),
])  # fmt: skip
def test_arrays_of_numpy(two: Cluster, text: str, sizes: dict[str, int], dim: str, parts: int) -> None:
    arrays, numbers = arguments(text, sizes)
    made = kernel(text)
    wanted = whole(made, arrays, numbers)
    before = {name: array.copy() for name, array in arrays.items()}
    found = made.map(two.client, arrays, shard=dim, parts=parts, **numbers)
    assert list(found) == ["Y"] and found["Y"].dtype == arrays["Y"].dtype
    got = two.client.compute(found["Y"]).result()
    assert got.tobytes() == wanted["Y"].tobytes()
    for name, array in arrays.items():
        assert array.tobytes() == before[name].tobytes()


def test_arrays_of_dask_in_whatever_chunks(two: Cluster) -> None:
    made = load(str(ROOT / "examples/gemm.ph")).gemm
    generator = numpy.random.default_rng(3)
    a, b, c = (generator.random(shape, numpy.float32) for shape in ((300, 40), (40, 50), (300, 50)))
    wanted = whole(made, {"A": a, "B": b, "C": c}, {"alpha": 2.0, "beta": 0.5})["C"]
    arrays = {"A": da.from_array(a, chunks=(77, 13)), "B": da.from_array(b, chunks=(9, 50)),
              "C": da.from_array(c, chunks=(300, 7))}  # fmt: skip
    found = made.map(two.client, arrays, shard="M", alpha=2.0, beta=0.5)["C"]
    assert found.chunks[0] == (128, 64, 64, 44)
    assert two.client.compute(found).result().tobytes() == wanted.tobytes()
    assert abs(two.client.compute((found * 2).sum()).result() - 2 * wanted.sum(dtype=numpy.float64)) < 1e2


def test_the_command_reads_files_where_they_are(
    two: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = numpy.random.default_rng(3).random((200, 33), numpy.float32)
    numpy.save(tmp_path / "a.npy", a)
    out = tmp_path / "c.npy"
    code = main([
        "run", str(ROOT / "examples/gemm.ph"), "--cluster", two.address, "--shard", "M=3", "--device", "cpu",
        "--set", "M=200", "--set", "N=50", "--set", "K=33", "--arg", f"A=@{tmp_path}/a.npy", "--arg", "B=ones",
        "--arg", "C=zeros", "--arg", "alpha=1", "--arg", "beta=0", "--out", f"C={out}", "--verify",
    ])  # fmt: skip
    said = capsys.readouterr().out
    assert code == 0 and "verified C: agrees with one block at a time, bit by bit" in said
    assert "expectation not judged" in said, "the header speaks of its own arrays"
    assert "shards along `M`: 3 of 128 to 8 cells" in said or "3 of 64 to 72" in said or "shards along `M`" in said
    assert re.search(r"gemm on cluster tcp://127\.0\.0\.1:\d+ \(2 workers, reference runtime; dashboard http://", said)
    assert numpy.load(out).shape == (200, 50)


def test_a_promise_holds_for_every_shard_or_is_refused_before_any_runs(two: Cluster) -> None:
    text = "@aligned(N = 48)\n" + STENCIL
    made = kernel(text)
    arrays, _ = arguments(text, {"N": 48 * 5, "M": 20})
    found = made.map(two.client, arrays, shard="N", parts=5)["Y"]
    assert found.chunks[0] == (48,) * 5
    assert two.client.compute(found).result().tobytes() == whole(made, arrays, {})["Y"].tobytes()
    arrays, _ = arguments(text, {"N": 100, "M": 20})
    with pytest.raises(LaunchError, match="aligned-broken: N = 100 is not a whole number of 48"):
        made.map(two.client, arrays, shard="N", parts=5)


REFUSED = {
    "tied": (["--shard", "K"], r"gemm\.ph:18: `gemm` cannot be cut along `K`"),
    "no extent": (["--shard", "Q"], "has no extent `Q`"),
    "a grid": (["--shard", "M", "--grid", "4"], "--grid is for a run in one process"),
    "detect": (["--shard", "M", "--detect", "races"], "--detect is for a run in one process"),
    "one device": (["--shard", "M", "--device", "cuda:1"], "on a cluster each worker has one GPU"),
    "no GPU": (["--shard", "M", "--device", "cuda"], "no worker has a GPU"),
    "no dimension": ([], "--shard DIM, or --shard DIM=PARTS"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_one_line(two: Cluster, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, words = REFUSED[case]
    assert main(["run", str(ROOT / "examples/gemm.ph"), "--cluster", two.address, *options]) == 2
    said = capsys.readouterr().err
    assert re.search(words, said) and said.count("\n") == 1, said


@pytest.mark.parametrize("where, words", [
    ("tcp://127.0.0.1:1", "no scheduler answers"), ("somewhere", "give local, local:N"), ("local:0", "at least 1"),
])  # fmt: skip
def test_no_such_cluster(
    where: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connect, "CONNECT_S", 1.0)
    assert main(["run", str(ROOT / "examples/gemm.ph"), "--cluster", where, "--shard", "M"]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1, said


def test_without_dask_the_extra_is_named() -> None:
    code = "import sys; sys.modules['distributed'] = None\nfrom phobos.cli import main\n"
    code += "sys.exit(main(['run', 'examples/gemm.ph', '--cluster', 'local', '--shard', 'M']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "pip install 'phobos-tools[cluster]'" in done.stderr


def test_two_runtimes_are_not_mixed() -> None:
    gpu, bare = Worker("a", "u1", "H"), Worker("b", "", "reference runtime")
    assert demand_alike([gpu, bare], "cpu") == "reference runtime" == demand_alike([bare], "auto")
    assert demand_alike([gpu], "auto") == "H"
    with pytest.raises(InputError, match=r"1 workers have a GPU and 1 have none \(b\)"):
        demand_alike([gpu, bare], "auto")


FAULTY = """
kernel faulty(X: tensor<i32>[N], Y: tensor<i32>[N]) {
  let i = ctx.block.x
  Y[i] = 100 / X[i]
}
"""


def test_a_fault_says_its_line_and_its_shard(two: Cluster) -> None:
    x = numpy.ones(40, numpy.int32)
    x[25] = 0
    found = kernel(FAULTY).map(two.client, {"X": x, "Y": numpy.zeros_like(x)}, shard="N", parts=4)["Y"]
    with pytest.raises(KernelFault, match=r"\(in the shard N = 20\.\.30\)") as error:
        two.client.compute(found).result()
    assert error.value.kind == "division-by-zero" and error.value.diagnostic is not None


def test_what_has_come_is_held_by_no_worker(two: Cluster) -> None:
    made = kernel(SAXPY)
    arrays, numbers = arguments(SAXPY, {"N": 64 * 12})
    held: list[int] = []

    def progress(done: int, total: int) -> None:
        if done in (9, 12):  # of 12 at most 3 and none are left to come; letting go takes a moment
            wait_until(lambda: results() <= 12 - done)
            held.append(results())

    def results() -> int:
        return sum("concatenate" in str(key) for keys in two.client.has_what().values() for key in keys)

    got = collected(two.client, sharded(made, arrays, numbers, "N", 12, LaunchOptions()), progress)
    assert len(held) == 2 and held[0] <= 3 and held[1] == 0
    assert got["Y"].tobytes() == whole(made, arrays, numbers)["Y"].tobytes()


def wait_until(is_so: Any, seconds: float = 3.0) -> None:
    until = time.monotonic() + seconds
    while not is_so() and time.monotonic() < until:
        time.sleep(0.02)


def test_of_several_faults_the_first_shard_is_told(two: Cluster) -> None:
    x = numpy.ones(400, numpy.int32)
    x[[399, 25, 130]] = 0
    cut = sharded(kernel(FAULTY), {"X": x, "Y": numpy.zeros_like(x)}, {}, "N", 8, LaunchOptions())
    with pytest.raises(KernelFault, match=r"\(in the shard N = 0\.\.50\)"):
        collected(two.client, cut)


def test_a_worker_that_leaves_in_the_middle_costs_time_alone(mortal: Cluster) -> None:
    """One of two workers is killed while shards run; the other does its part again."""
    made = load(str(ROOT / "examples/gemm.ph")).gemm
    generator = numpy.random.default_rng(3)
    arrays = {name: generator.random(shape, numpy.float32) for name, shape in
              (("A", (1536, 256)), ("B", (256, 128)), ("C", (1536, 128)))}  # fmt: skip
    ended: list[int] = []
    processes = mortal.client.run(os.getpid)
    cut = sharded(made, arrays, {"alpha": 1.0, "beta": 0.0}, "M", 12, LaunchOptions())

    def progress(done: int, total: int) -> None:
        if done >= 2 and not ended:
            ended.append(next(iter(processes.values())))
            os.kill(ended[0], signal.SIGKILL)

    got = collected(mortal.client, cut, progress)["C"]
    assert ended
    assert got.tobytes() == whole(made, arrays, {"alpha": 1.0, "beta": 0.0})["C"].tobytes()

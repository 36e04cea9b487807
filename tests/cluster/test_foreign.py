"""A cluster that others started, as on other machines: scheduler and workers by dask's own commands, in folders of
their own, over TLS with a certificate made for it; a worker without this package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import pytest

from phobos.cli import main
from phobos.errors import InputError
from phobos.runtime.cluster import connect
from phobos.runtime.cluster.connect import Cluster, understood

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")  # which has a configuration of its own

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ".".join(map(str, sys.version_info[:2]))
ARGUMENTS = [
    "--device", "cpu", "--set", "M=200", "--set", "N=50", "--set", "K=33", "--arg", "B=ones", "--arg", "C=zeros",
    "--arg", "alpha=1", "--arg", "beta=0",
]  # fmt: skip


@dataclass
class Foreign:
    """Processes of a cluster that speaks TLS. `settings` is dask's configuration of whoever has the certificate."""

    folder: Path
    settings: dict[str, Any]
    address: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, *words: str, path: str) -> Path:
        """Run a command of dask in a folder of its own; gives the folder."""
        where = self.folder / name
        where.mkdir()
        keys = [f"--tls-{kind}={self.folder}/{file}.pem" for kind, file in
                (("ca-file", "cert"), ("cert", "cert"), ("key", "key"))]  # fmt: skip
        with (where / "said").open("wb") as said:
            self.processes.append(subprocess.Popen(
                [sys.executable, "-m", "dask", words[0], *keys, *words[1:]], cwd=where, stdout=said, stderr=said,
                env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
            ))  # fmt: skip
        return where

    def worker(self, name: str, path: str) -> None:
        known = ["--scheduler-file", f"{self.folder}/scheduler.json", "--host", "127.0.0.1", "--protocol", "tls://"]
        where = self.start(name, "worker", *known, "--nthreads", "1", "--no-nanny", "--no-dashboard", path=path)
        until(lambda: b"Registered to" in (where / "said").read_bytes(), where)


def until(is_so: Any, where: Path, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, (where / "said").read_text()
        time.sleep(0.1)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no `openssl` to make a certificate with")
    folder = tmp_path_factory.mktemp("foreign")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    made = Foreign(folder, {
        "distributed.comm.tls.ca-file": f"{folder}/cert.pem", "distributed.comm.tls.client.cert": f"{folder}/cert.pem",
        "distributed.comm.tls.client.key": f"{folder}/key.pem",
    })  # fmt: skip
    try:
        file = folder / "scheduler.json"
        where = made.start(
            "scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0", "--protocol", "tls://", "--no-dashboard",
            "--scheduler-file", str(file), path=str(ROOT),
        )  # fmt: skip
        until(file.exists, where)
        made.address = json.loads(file.read_text())["address"]
        made.worker("here", str(ROOT))
        yield made
    finally:
        for process in made.processes:
            process.kill()
            process.wait()


def run(where: str, *more: str) -> int:
    return main(["run", str(ROOT / "examples/gemm.ph"), "--cluster", where, "--shard", "M=3", *ARGUMENTS, *more])


def test_our_command_works_on_it_over_tls(
    foreign: Foreign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert foreign.address.startswith("tls://127.0.0.1:")
    monkeypatch.chdir(tmp_path)
    a = numpy.random.default_rng(3).random((200, 33), numpy.float32)
    numpy.save("a.npy", a)  # a relative name: the worker stands in another folder
    with dask.config.set(foreign.settings):
        run(foreign.address, "--arg", "A=@a.npy", "--out", "C=c.npy", "--verify")
    said = capsys.readouterr()
    assert "verified C: agrees with one block at a time, bit by bit" in said.out, said
    assert re.search(r"gemm on cluster tls://127\.0\.0\.1:\d+ \(1 worker, reference runtime", said.out)
    numpy.testing.assert_allclose(numpy.load("c.npy"), a.sum(axis=1, keepdims=True).repeat(50, 1), rtol=1e-5)


@pytest.mark.parametrize("how, words", [
    ("nothing", "dask's configuration names no certificates: set `ca-file`"),
    ("no file", r"certificates that dask's configuration names .* cannot be read: .*No such file"),
    ("tcp", "no scheduler answers"),
])  # fmt: skip
def test_who_has_not_the_certificate_is_told_in_one_line(
    foreign: Foreign, how: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connect, "CONNECT_S", 1.0)
    where = foreign.address.replace("tls", "tcp") if how == "tcp" else foreign.address
    settings = {key: f"{path}.not" for key, path in foreign.settings.items()} if how == "no file" else {}
    with dask.config.set(settings):
        assert run(where, "--arg", "A=ones") == 2
    said = capsys.readouterr().err
    assert re.search(words, said) and said.count("\n") == 1, said


def test_a_worker_without_this_package_is_named(foreign: Foreign, capsys: pytest.CaptureFixture[str]) -> None:
    lacks = foreign.folder / "lacks"
    lacks.mkdir()
    (lacks / "phobos.py").write_text("raise ModuleNotFoundError(\"No module named 'phobos'\", name='phobos')\n")
    foreign.worker("there", str(lacks))
    with dask.config.set(foreign.settings):
        assert run(foreign.address, "--arg", "A=ones") == 2
    said = capsys.readouterr().err
    words = r"worker tls://127\.0\.0\.1:\d+ has no `phobos`: `pip install 'phobos-tools\[cluster\]=="
    assert re.search(words, said) and said.count("\n") == 1, said


@pytest.mark.parametrize("versions, words", [
    ((PYTHON, "0.0.1"), r"worker tcp://b:1 has phobos 0\.0\.1, this is .*: install one of them on both"),
    (("2.7", None), rf"worker tcp://b:1 runs Python 2\.7, this is {PYTHON}: use one of them on both"),
    (ImportError("broken"), "worker tcp://b:1 does not answer: ImportError: broken"),
    (ModuleNotFoundError("numpy", name="numpy"), "worker tcp://b:1 has no `numpy`: `pip install"),
])  # fmt: skip
def test_another_version_is_refused(versions: Any, words: str) -> None:
    from phobos import __version__

    if isinstance(versions, tuple) and versions[1] is None:
        versions = (versions[0], __version__)
    with pytest.raises(InputError, match=words):
        understood({"tcp://a:1": (PYTHON, __version__), "tcp://b:1": versions})


def test_what_a_worker_is_asked_is_a_text(two: Cluster) -> None:
    """A function would have to be found there, and one by value would be code of this Python."""
    assert set(two.client.run(eval, connect.VERSIONS).values()) == {(PYTHON, connect.__version__)}

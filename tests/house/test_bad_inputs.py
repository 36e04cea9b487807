"""Whatever a command is given to read, and wherever it is to write: an exit code of the contract and one clear line.

Each command with files that are missing, no files, not text, unreadable or wrong; with outputs that nobody can write,
a pipe whose reader has gone, and a disk that is full.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy
import pytest

from phobos.cli import COMMANDS, available, main

KERNEL = "// run: N=4 X=zeros\nkernel k(X: tensor<f32>[N]) {\n  let p = ctx.block.x\n  X[p] = 1.0\n}\n"


def unreadable(path: Path) -> None:
    """Opens, and cannot be read."""
    path.symlink_to("/proc/self/mem")


# What stands where a command looks for its file.
BAD: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "a directory": lambda path: path.mkdir(),
    "empty": lambda path: path.write_bytes(b""),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 9),
    "not UTF-8": lambda path: path.write_bytes(KERNEL.encode() + b"// \xe9\n"),
    "UTF-16": lambda path: path.write_bytes(KERNEL.encode("utf-16")),
    "NUL": lambda path: path.write_bytes(KERNEL.encode() + b"\0\0"),
    "a mark alone": lambda path: path.write_bytes(b"\xef\xbb\xbf"),
    "half a letter": lambda path: path.write_bytes(KERNEL.encode() + "ü".encode()[:1]),
    "unreadable": unreadable,
    "a loop of links": lambda path: path.symlink_to(path),
    "a long line": lambda path: path.write_text(KERNEL + "// " + "x" * 10**6),
    "a long expression": lambda path: path.write_text(KERNEL.replace("1.0", "1.0" + " + 1.0" * 5_000)),
    "a long name": lambda path: path.write_text(KERNEL.replace("kernel k", "kernel " + "k" * 10**5)),
    "no kernel": lambda path: path.write_text("// nothing\n"),
    "wrong": lambda path: path.write_text(KERNEL.replace("let p", "let p p")),
    "a wrong header": lambda path: path.write_text("// run: N=x X=@none.npy Z\n" + KERNEL),
    "lines ended by CR": lambda path: path.write_bytes(KERNEL.replace("\n", "\r").encode()),
    "good": lambda path: path.write_text(KERNEL),
}

READING = {
    "check": ["check", "FILE"],
    "check json": ["check", "FILE", "--output-format", "json"],
    "check --fix": ["check", "FILE", "--fix"],
    "check --diff": ["check", "FILE", "--diff"],
    "check --target": ["check", "FILE", "--target", "a100"],
    "check --config": ["check", "GOOD", "--config", "FILE"],
    "check --baseline": ["check", "GOOD", "--baseline", "FILE"],
    "check --prove": ["check", "FILE", "--prove"],
    "fmt": ["fmt", "FILE"],
    "fmt --check": ["fmt", "--check", "FILE"],
    "fmt --diff": ["fmt", "--diff", "FILE"],
    "run": ["run", "FILE", "--device", "cpu"],
    "run --plan": ["run", "FILE", "--device", "cpu", "--plan"],
    "run --json": ["run", "FILE", "--device", "cpu", "--json"],
    "run --arg": ["run", "GOOD", "--device", "cpu", "--arg", "X=@FILE"],
    "emit cuda": ["emit", "FILE", "--format", "cuda"],
    "emit facts": ["emit", "FILE", "--format", "facts"],
    "emit contract": ["emit", "FILE", "--format", "contract"],
    "occupancy": ["occupancy", "FILE", "--target", "a100"],
    "tune": ["tune", "FILE", "--device", "cpu", "--budget", "1"],
    "trace": ["trace", "FILE", "--device", "cpu"],
    "init": ["init", "FILE"],
    "rule": ["rule", "FILE"],
    "lsp --log-file": ["lsp", "--stdio", "--tcp", "127.0.0.1:0", "--log-file", "FILE"],
    "doctor": ["doctor", "FILE"],
    "bench": ["bench", "FILE"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.ph").write_text(KERNEL)
    return tmp_path


def call(words: list[str], file: Path) -> int:
    return main([word.replace("FILE", str(file)).replace("GOOD", "good.ph") for word in words])


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("command", [name for name in READING if READING[name][0] in available()])
def test_what_a_command_reads(command: str, what: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = folder / "it.ph"
    BAD[what](file)
    code = call(READING[command], file)
    out, err = capfd.readouterr()
    assert code in (0, 1, 2)
    assert "Traceback" not in out + err
    if code == 2:
        assert 1 <= len(err.splitlines()) <= 4 and all(len(line) < 1000 for line in err.splitlines()), err


def test_every_command_is_tried() -> None:
    assert {words[0] for words in READING.values()} == set(COMMANDS)


GOOD_ENDS = {
    name: {"check --config": 2, "check --baseline": 2, "run --arg": 2, "init": 2, "rule": 2, "lsp --log-file": 2,
           "doctor": 2, "bench": 2}.get(name, 0)
    for name in READING
}  # fmt: skip


@pytest.mark.parametrize("command", [name for name in READING if READING[name][0] in available()])
def test_a_good_file_is_served(command: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """So that it is not for another reason that those above are refused."""
    code = call(READING[command], folder / "good.ph")
    assert code == GOOD_ENDS[command], capfd.readouterr()


WRITING = {
    "check": ["check", "good.ph", "--output-file", "FILE"],
    "check --baseline": ["check", "good.ph", "--write-baseline", "FILE"],
    "emit": ["emit", "good.ph", "--format", "cuda", "-o", "FILE"],
    "run": ["run", "good.ph", "--device", "cpu", "--out", "X=FILE"],
    "tune": ["tune", "good.ph", "--device", "cpu", "--budget", "1", "--plot", "FILE"],
    "trace": ["trace", "good.ph", "--device", "cpu", "--out", "FILE"],
    "trace --plot": ["trace", "good.ph", "--device", "cpu", "--plot", "FILE"],
    "init": ["init", "FILE"],
    "lsp": ["lsp", "--stdio", "--log-file", "FILE"],
}
NOWHERE: dict[str, Callable[[Path], Path]] = {
    "no such folder": lambda folder: folder / "none" / "it.out",
    "a directory": lambda folder: folder,
    "below a file": lambda folder: folder / "good.ph" / "it.out",
    "a full disk": lambda folder: Path("/dev/full"),  # a device, which stays one: `test_files` shows it first
    "a system's own folder": lambda folder: Path("/proc/it.out"),
    "a name too long": lambda folder: folder / ("x" * 300),
}
FINE = {("init", "no such folder"), ("init", "a directory")}  # it makes folders, and fills those that are there


@pytest.mark.parametrize("where", NOWHERE)
@pytest.mark.parametrize("command", [name for name in WRITING if WRITING[name][0] in available()])
def test_where_a_command_cannot_write(
    command: str, where: str, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if command == "lsp" and where == "a full disk":
        return  # a log that cannot be kept is no reason to end; `tests/lsp` has it
    code = call(WRITING[command], NOWHERE[where](folder))
    out, err = capfd.readouterr()
    assert "Traceback" not in out + err
    assert code == (0 if (command, where) in FINE else 2), out + err
    if code:
        assert 1 <= len(err.splitlines()) <= 4, err


@pytest.mark.parametrize("command", [name for name in WRITING if name not in ("init", "lsp")])
def test_no_command_writes_over_the_kernels_it_reads(
    command: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`phobos emit k.ph -o k.ph` was the end of the kernel."""
    (folder / "link.ph").symlink_to("good.ph")
    for path in ("good.ph", folder / "good.ph", "./link.ph"):
        assert call(WRITING[command], Path(path)) == 2
        assert "where the kernels are: give another file" in capfd.readouterr().err
    assert (folder / "good.ph").read_text() == KERNEL


PRINTING = {
    "check": ["check", "good.ph"],
    "check json": ["check", "good.ph", "--output-format", "json"],
    "fmt": ["fmt", "--diff", "loose.ph"],
    "run": ["run", "good.ph", "--device", "cpu"],
    "run --json": ["run", "good.ph", "--device", "cpu", "--json"],
    "emit": ["emit", "good.ph", "--format", "cuda"],
    "occupancy": ["occupancy", "good.ph", "--target", "a100"],
    "tune": ["tune", "good.ph", "--device", "cpu", "--budget", "1"],
    "trace": ["trace", "good.ph", "--device", "cpu"],
    "rule": ["rule", "--all"],
    "bench": ["bench", "--list"],
    "init": ["init", "new"],
    "doctor": ["doctor", "--json"],
    "help": ["--help"],
}


@contextmanager
def printing_to(what: str) -> Iterator[None]:
    """Standard output is a device that is full, or a pipe whose reader has gone. (pytest puts its own in its place
    between fixture and test.)"""
    if what == "a full disk":
        descriptor = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, descriptor = os.pipe()
        os.close(reader)
    before = sys.stdout
    sys.stdout = stream = io.TextIOWrapper(os.fdopen(descriptor, "wb"), "utf-8")
    try:
        yield
    finally:
        sys.stdout = before
        stream.close()


@pytest.mark.parametrize("what", ["a pipe without a reader", "a full disk"])
@pytest.mark.parametrize("command", [name for name in PRINTING if name == "help" or PRINTING[name][0] in available()])
def test_where_a_command_cannot_print(command: str, what: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A reader that has seen enough is no failure; a disk that takes nothing more is, and is named."""
    (folder / "loose.ph").write_text("kernel k(){x=1}\n")
    with printing_to(what):
        code = call(PRINTING[command], folder / "good.ph")
    err = capfd.readouterr().err
    assert "Traceback" not in err
    if what == "a full disk":
        assert code == 2 and "No space left on device" in err, err
    else:
        assert code in (0, 1) and not err.strip(), err


def test_files_that_may_not_be_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As root every file may be read, so the system's answer is put in."""
    whole = builtins.open

    def refused(file: object, *rest: object, **more: object) -> object:
        if str(file).endswith("good.ph"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        return whole(file, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(builtins, "open", refused)
    monkeypatch.setattr(io, "open", refused)
    for words in READING.values():
        if words[0] in ("rule", "lsp", "doctor", "bench", "init") or "GOOD" in words:
            continue
        assert call(words, folder / "good.ph") == 2, words
        err = capfd.readouterr().err
        assert "Permission denied" in err and "Traceback" not in err and len(err.splitlines()) <= 3, (words, err)


@pytest.mark.parametrize("what", ["not there", "a file", "read-only", "unreadable entries"])
def test_a_cache_that_cannot_be_kept_is_done_without(
    what: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    place = folder / "cache"
    if what == "a file":
        place.write_text("x")
    elif what == "read-only":
        place = Path("/proc/cache")
    elif what == "unreadable entries":
        monkeypatch.setenv("PHOBOS_CACHE", str(place))
        assert call(["occupancy", "good.ph", "--target", "a100"], folder) == 0
        for kept in [one for one in place.rglob("*") if one.is_file()]:
            kept.write_bytes(numpy.random.default_rng(1).bytes(400))
    monkeypatch.setenv("PHOBOS_CACHE", str(place))
    for words in (READING["check"], READING["occupancy"], READING["run"]):
        assert call(words, folder / "good.ph") == 0, (words, capfd.readouterr())
        assert "Traceback" not in capfd.readouterr().err

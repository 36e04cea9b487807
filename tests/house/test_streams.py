"""Standard streams that are closed, full, or open the wrong way: the exit code stands, and there is no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = "kernel k(X: tensor<f32>[N]) {\n  X[ctx.block.x * 64 :+ 64] = 1.0\n}\n"


@pytest.mark.parametrize("command", ["check", "fmt - <&3"])
@pytest.mark.skipif(sys.platform == "win32", reason="a directory that somebody is in cannot be removed there")
def test_a_directory_that_has_been_removed_is_named(command: str, tmp_path: Path) -> None:
    (tmp_path / "k.ph").write_text(KERNEL)
    (tmp_path / "gone").mkdir()
    script = f"cd gone && exec 3<../k.ph && rmdir ../gone && exec {sys.executable} -m phobos {command}"
    ended = subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2 and "the current directory has been removed" in ended.stderr, ended.stderr


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("check - <&-", 2, "standard input (`-`) is closed"),
        ("fmt - <&-", 2, "standard input (`-`) is closed"),
        ("lsp <&-", 2, "is a language server"),
        ("check nul.ph 2>/dev/full", 2, ""),
        ("check nul.ph 2</dev/null", 2, ""),
        ("check k.ph >/dev/full 2>&1", 2, ""),
        ("check k.ph 1</dev/null", 2, "cannot write the output: Bad file descriptor"),
        ("nothing 2>/dev/full", 2, ""),
        ("run - <k.ph", 2, "standard input is read by `phobos check` and `phobos fmt`"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the shell's redirections are those of POSIX")
def test_the_exit_code_stands(command: str, code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "k.ph").write_text(KERNEL)
    (tmp_path / "nul.ph").write_text("\0")
    script = f"exec {sys.executable} -m phobos {command}"
    ended = subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr and "Traceback" not in ended.stderr

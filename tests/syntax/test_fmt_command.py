"""`phobos fmt`: exit codes, what it prints, and what it leaves alone."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from phobos.cli import main

LOOSE = "kernel k(){x=1}\n"
NEAT = "kernel k() {\n  x = 1\n}\n"
BROKEN = "kernel k() {\n  x = 3 4\n}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loose.ph").write_text(LOOSE)
    (tmp_path / "neat.ph").write_text(NEAT)
    (tmp_path / "other.txt").write_text(LOOSE)
    return tmp_path


class _Input:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", _Input(data))


def test_files_below_a_directory_are_formatted(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = (folder / "neat.ph").stat().st_mtime_ns
    assert main(["fmt", "."]) == 0
    assert (folder / "loose.ph").read_text() == NEAT
    assert (folder / "other.txt").read_text() == LOOSE
    assert (folder / "neat.ph").stat().st_mtime_ns == before
    assert capfd.readouterr().out == "1 file formatted, 1 file already formatted.\n"
    assert main(["fmt", "."]) == 0
    assert capfd.readouterr().out == "2 files already formatted.\n"


def test_check_names_what_would_change_and_changes_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--check", "."]) == 1
    assert capfd.readouterr().out == "would format loose.ph\n1 file would be formatted, 1 file already formatted.\n"
    assert (folder / "loose.ph").read_text() == LOOSE
    assert main(["fmt", "--check", "neat.ph"]) == 0


def test_where_there_is_nothing_to_format_the_path_is_taken_to_be_wrong(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    assert main(["fmt", "empty"]) == main(["check", "empty"]) == 2
    assert capfd.readouterr().err == "phobos: error: no .ph files under empty\n" * 2


def test_diff_shows_what_would_change_and_changes_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--diff", "loose.ph", "neat.ph"]) == 1
    out = capfd.readouterr().out
    assert out == "--- loose.ph\n+++ loose.ph\n@@ -1 +1,3 @@\n-kernel k(){x=1}\n+kernel k() {\n+  x = 1\n+}\n"
    assert (folder / "loose.ph").read_text() == LOOSE
    assert main(["fmt", "--diff", "neat.ph"]) == 0


def test_a_file_with_mistakes_is_left_as_it_is(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.ph").write_text(BROKEN)
    assert main(["fmt", "."]) == 2
    assert (folder / "broken.ph").read_text() == BROKEN
    assert (folder / "loose.ph").read_text() == NEAT  # the others are formatted all the same
    captured = capfd.readouterr()
    assert "broken.ph:2:9: PH001 expected an operator or the end of the statement, found `4`" in captured.err
    assert "left as it is" in captured.err and captured.out.endswith("1 file with errors.\n")


@pytest.mark.parametrize("mode", [[], ["--check"], ["--diff"]])
def test_mistakes_are_exit_2_in_every_mode(folder: Path, mode: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.ph").write_text(BROKEN)
    assert main(["fmt", *mode, "broken.ph"]) == 2
    assert "already formatted" not in capsys.readouterr().out, "a file is counted once"


def test_standard_input_goes_to_standard_output(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(monkeypatch, LOOSE.encode())
    assert main(["fmt", "-"]) == 0
    assert capfdbinary.readouterr().out == NEAT.encode()
    stdin(monkeypatch, BROKEN.encode())
    assert main(["fmt", "-", "--stdin-filename", "a.ph"]) == 2
    captured = capfdbinary.readouterr()
    assert captured.out == b"" and b"a.ph:2:9: PH001" in captured.err


def test_bytes_that_are_no_layout_stay(folder: Path) -> None:
    (folder / "dos.ph").write_bytes(b"\xef\xbb\xbfkernel k(){\r\nx=1 // \xc3\xa9\r\n}")
    assert main(["fmt", "dos.ph"]) == 0
    assert (folder / "dos.ph").read_bytes() == b"\xef\xbb\xbfkernel k() {\r\n  x = 1  // \xc3\xa9\r\n}\r\n"


def test_only_some_lines(folder: Path) -> None:
    (folder / "part.ph").write_text("kernel k(){\nx=1\ny=2\n}\n")
    assert main(["fmt", "--lines", "3", "part.ph"]) == 0
    assert (folder / "part.ph").read_text() == "kernel k(){\nx=1\n  y = 2\n}\n"
    assert main(["fmt", "--lines", "1-2", "part.ph"]) == 0
    assert (folder / "part.ph").read_text() == "kernel k() {\n  x = 1\n  y = 2\n}\n"


def test_the_line_length_is_configured(folder: Path) -> None:
    text = "kernel k() {\n  x = aaaaaaaaaaaa + bbbbbbbbbbbbbb\n}\n"
    (folder / "long.ph").write_text(text)
    assert main(["fmt", "--check", "long.ph"]) == 0
    assert main(["fmt", "--check", "--line-length", "30", "long.ph"]) == 1
    (folder / "phobos.toml").write_text("line-length = 30\n")
    from phobos.check.configuration import forget

    forget()
    try:
        assert main(["fmt", "--check", "long.ph"]) == 1
    finally:
        forget()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["missing.ph"], "no such file"),
        (["-", "loose.ph"], "standard input"),
        (["--lines", "9-3", "loose.ph"], "9-3"),
        (["--lines", "1-2", "."], "exactly one file"),
        (["--line-length", "3", "loose.ph"], "20 to 1000"),
        (["--check", "--diff", "loose.ph"], "not allowed with"),
        ([], "required"),
        (["binary.ph"], "not"),
        (["latin.ph"], "not UTF-8"),
        (["script.py"], ".ph files only"),
    ],
)
def test_what_cannot_be_done_is_exit_2_with_a_reason(
    folder: Path, capfd: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    (folder / "binary.ph").write_bytes(b"\0\1\2")
    (folder / "latin.ph").write_bytes(b"// \xe9\n")
    (folder / "script.py").write_text("pass\n")
    assert main(["fmt", *words]) == 2
    captured = capfd.readouterr()
    assert reason in captured.err and "Traceback" not in captured.err

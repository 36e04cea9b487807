"""A file is put in place in one step, by one function."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

import pytest

from phobos.files import put


def test_what_fails_midway_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")

    def fails(stream: IO[bytes]) -> None:
        stream.write(b"half")
        stream.flush()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put(str(file), fails)
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]
    put(str(file), lambda stream: stream.write(b"new"))
    assert file.read_text() == "new" and list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(sys.platform == "win32", reason="no such devices there")
def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    """As root, `-o /dev/null` once put a file in the place of the device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        put(str(pipe), lambda stream: stream.write(b"through"))
        assert os.read(reader, 100) == b"through" and pipe.is_fifo()
    finally:
        os.close(reader)


@pytest.mark.skipif(sys.platform == "win32", reason="modes are a matter of POSIX")
def test_modes_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "a.txt", tmp_path / "link"
    before = os.umask(0o027)
    try:
        put(str(file), lambda stream: stream.write(b"1"))
        assert file.stat().st_mode & 0o777 == 0o640
        file.chmod(0o600)
        link.symlink_to(file)
        put(str(link), lambda stream: stream.write(b"2"))
        assert link.is_symlink() and file.read_bytes() == b"2" and file.stat().st_mode & 0o777 == 0o600
        put(str(tmp_path / "b"), lambda stream: stream.write(b"3"), private=True)
        assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)

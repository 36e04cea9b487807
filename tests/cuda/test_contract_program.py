"""The host program of docs/launching.md computes on a card what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.codegen.launching import PROGRAM, folder_with_phobos


def test_the_printed_program_computes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("cupy")
    folder_with_phobos(monkeypatch, tmp_path)
    exec(PROGRAM, {})
    said = capsys.readouterr().out
    assert said.endswith(" workers, 10 blocks, sum 50000\n") and int(said.split()[0]) == 10

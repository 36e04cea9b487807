"""The stages of `make test`: side by side where it says so, all of them run, and one that failed is the exit status."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import stages

# Waits until the other one has begun, so that it ends only if both run at once.
MEET = """
import pathlib, sys, time
mine, theirs, status = sys.argv[1:]
pathlib.Path(mine).touch()
deadline = time.monotonic() + 20
while not pathlib.Path(theirs).exists() and time.monotonic() < deadline:
    time.sleep(0.01)
print("met" if pathlib.Path(theirs).exists() else "alone", pathlib.Path(mine).name)
sys.exit(int(status))
"""


def test_stages_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    scripts = {
        "first": ["-c", "print('first ran'); raise SystemExit(3)"],
        "a": ["-c", MEET, a, b, "0"],
        "b": ["-c", MEET, b, a, "0"],
    }
    monkeypatch.setattr(stages, "commands", lambda stage, report: [[sys.executable, *scripts[stage]]])
    assert stages.main(["a+b"]) == 0
    said = capfd.readouterr().out
    assert said.index("met b") < said.index("== a\n") < said.index("met a") < said.index("0 passed")
    assert stages.main(["first", "b+a"]) == 1  # the others ran all the same
    said = capfd.readouterr().out
    assert "FAILED" in said and "first ran" in said and "met a" in said


def test_a_stage_that_does_not_exist_is_said_before_any_runs(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="no stage 'unti'"):
        stages.main(["lint", "editors+unti"])
    assert "==" not in capfd.readouterr().out

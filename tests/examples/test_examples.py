"""The examples: what the README shows of them is what they do."""

import re
from pathlib import Path

import pytest

from phobos.check import findings
from phobos.check.configuration import DEFAULT
from phobos.cli import main
from tests.editors.parts import ROOT

FILES = sorted((ROOT / "examples").glob("*.ph"))
each = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@each
def test_runs_and_meets_its_expectations(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", str(path), "--device", "cpu"])
    said = capsys.readouterr()
    assert code == 0, said.out + said.err
    assert said.out.count("expectation met") == path.read_text().count("// expect: ") > 0


def test_only_the_hang_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(ROOT / "examples"), "--output-format", "concise"]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.endswith("others") or "[PH" in line]
    assert len(lines) == 1
    assert re.match(r".*hang\.ph:\d+:5: error\[PH205\] ", lines[0])


@each
def test_the_others_have_no_finding_above_advice(path: Path) -> None:
    found = [d.code for d in findings(str(path), path.read_text(), DEFAULT) if d.severity != "info"]
    assert found == (["PH205"] if path.stem == "hang" else [])


def test_the_readme_shows_the_hang_as_it_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    main(["check", "examples/hang.ph", "--output-format", "full"])
    shown = capsys.readouterr().out.strip()
    assert shown in (ROOT / "README.md").read_text(), shown

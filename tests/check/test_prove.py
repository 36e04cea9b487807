"""`--prove`: an error that says that something happens is shown to happen, and the command it prints shows it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from phobos.check import findings
from phobos.cli import main
from phobos.runtime.replay import prove
from tests.check.markdown import Case, cases, configured

FOLDER = Path(__file__).parent
HAPPEN = ("PH203", "PH204", "PH205", "PH215", "PH501", "PH502", "PH503")
# All but the one case whose hang needs an array full of sevens, which the search does not try.
CASES = [
    case
    for name in ("barriers.md", "races.md", "catalogue.md")
    for case in cases(FOLDER / name)
    if any(f"error[{code}]" in case.text for code in HAPPEN) and "7 {  // error[PH203] | warning" not in case.text
]


@pytest.mark.parametrize("case", CASES, ids=[case.where for case in CASES])
def test_every_hang_and_every_race_of_the_suites_is_shown(case: Case) -> None:
    found = findings("case.ph", case.text, configured(case))
    errors = [d for d in found if d.code in HAPPEN and d.severity == "error"]
    assert errors
    for diagnostic in errors:
        proof = prove("case.ph", case.text, diagnostic)
        assert proof is not None, f"{case.where} {case.name}: {diagnostic.code}\n{case.text}"
        assert proof.kind == ("race" if diagnostic.code.startswith("PH5") else "deadlock")


def test_the_command_that_is_printed_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = next(case.text for case in CASES if "PH205" in case.text)
    path = tmp_path / "sweep.ph"
    path.write_text(text)
    assert main(["check", str(path), "--prove"]) == 1
    assert main(["check", str(path), "--prove", "--output-format", "full"]) == 1
    shown = capsys.readouterr().out
    assert "it happens: deadlock" in shown and "  block 0 |======|............  waits (line " in shown
    command = shlex.split(shown.partition("to see it: ")[2].split("\n")[0])
    assert command[:2] == ["phobos", "run"]
    assert main(command[1:]) == 1
    assert "confirms PH205" in capsys.readouterr().out


def test_nothing_is_searched_for_where_nothing_happens() -> None:
    text = "@persistent(2)\nkernel k(X: tensor<f32>[N]) {\n  X[0] = 1.0\n}\n"
    (diagnostic,) = [d for d in findings("k.ph", text) if d.severity == "error"]
    assert prove("k.ph", text, diagnostic) is None

"""All that the semantics knows of a kernel, as text. `PHOBOS_UPDATE_SNAPSHOTS=1` rewrites the snapshots."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phobos.semantics.module import analyse
from phobos.semantics.report import report

ROOT = Path(__file__).parents[2]
REPORTS = Path(__file__).parent / "reports"


@pytest.mark.parametrize("name", ["staged", "saxpy", "hang", "normalise"])
def test_report(name: str) -> None:
    module = analyse(name, (ROOT / "examples" / f"{name}.ph").read_text(encoding="utf-8"))
    (unit,) = module.units
    text = report(unit.program, lambda span: module.file.text.count("\n", 0, module.absolute(unit, span).start) + 1)
    expected = REPORTS / f"{name}.txt"
    if os.environ.get("PHOBOS_UPDATE_SNAPSHOTS"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")

"""All that the semantics knows of a kernel, as text. `PHOBOS_UPDATE_SNAPSHOTS=1` rewrites the snapshots."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phobos.semantics.module import analyse
from phobos.semantics.report import report

REPORTS = Path(__file__).parent / "reports"


@pytest.mark.parametrize("path", sorted(REPORTS.glob("*.ph")), ids=lambda path: path.stem)
def test_report(path: Path) -> None:
    module = analyse(path.name, path.read_text(encoding="utf-8"))
    (unit,) = module.units
    text = report(unit.program, lambda span: module.file.text.count("\n", 0, module.absolute(unit, span).start) + 1)
    expected = path.with_suffix(".txt")
    if os.environ.get("PHOBOS_UPDATE_SNAPSHOTS"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")

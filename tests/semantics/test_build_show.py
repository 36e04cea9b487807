"""Whole programs as text: order of effects, inlining, temporaries, conversions.

`PHOBOS_UPDATE_SNAPSHOTS=1` rewrites them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phobos.semantics.module import analyse
from phobos.semantics.show import show

SHOWN = Path(__file__).parent / "shown"


@pytest.mark.parametrize("path", sorted(SHOWN.glob("*.ph")), ids=lambda path: path.stem)
def test_shown(path: Path) -> None:
    module = analyse(path.name, path.read_text(encoding="utf-8"))
    text = "\n".join(show(unit.program) for unit in module.units)
    text += "".join(
        f"{problem.code} {problem.message}\n" for unit in module.units for problem in unit.problems
    )
    expected = path.with_suffix(".txt")
    if os.environ.get("PHOBOS_UPDATE_SNAPSHOTS"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")

"""The full terminal output of each rule on its own bad example, as reviewers read it.

`PHOBOS_UPDATE_SNAPSHOTS=1` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phobos.check import findings, registry
from phobos.check.render import full
from tests.check.test_manuals import CODES, configuration_of

FOLDER = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize("code", CODES)
def test_snapshot(code: str) -> None:
    parts: list[str] = []
    for example in registry.manual(code).bad:
        found = findings("bad.ph", example, configuration_of(example))
        parts += [full(d, example, "bad.ph") for d in found if d.code == code]
    shown = "\n".join(parts)
    path = FOLDER / f"{code}.txt"
    if os.environ.get("PHOBOS_UPDATE_SNAPSHOTS"):
        path.write_text(shown, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == shown


def test_no_snapshot_is_left_over() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == CODES

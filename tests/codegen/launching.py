"""The host program that docs/launching.md prints, and a folder in which it can run as a reader would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
(PROGRAM,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/launching.md").read_text(encoding="utf-8"), re.S)


def folder_with_phobos(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Makes `folder` the current one, with our examples in it, and `phobos` mean this checkout."""
    run = subprocess.run

    def instead(words: list[str], **how: Any) -> Any:
        return run([sys.executable, "-m", *words], **how)

    monkeypatch.setattr(subprocess, "run", instead)
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    (folder / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(folder)

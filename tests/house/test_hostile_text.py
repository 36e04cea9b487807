"""The checker, the formatter and the server, told of everything hostile that we know, watched by the interpreter.

An audit hook sees what any code in the process asks of the system, however it is spelled, so this holds where the
import test of `test_security` cannot look. A hook cannot be taken off again: all this happens in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]

def watched(tmp_path: Path, planted: str = "") -> list[list[str]]:
    cache = tmp_path / "cache"
    cache.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.house.hostile", str(cache), *([planted] if planted else [])],
        capture_output=True, text=True, cwd=tmp_path, timeout=300,
        env={"XDG_CACHE_HOME": str(cache), "PHOBOS_CACHE": str(cache), "HOME": str(tmp_path),
             "PYTHONPATH": str(HOUSE), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_nothing_hostile_reaches_the_system(tmp_path: Path) -> None:
    assert watched(tmp_path) == []
    assert [one.name for one in tmp_path.iterdir()] == ["cache"]


def test_the_watch_sees_what_it_is_for(tmp_path: Path) -> None:
    planted = "open('/etc/passwd').close(); os.system('true'); open('it.ph', 'w').close(); os.mkdir('made')"
    assert [event for event, _ in watched(tmp_path, planted)] == ["open", "os.system", "open", "os.mkdir"]

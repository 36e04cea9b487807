"""What the server does not load, and what only `phobos.lsp` may import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from phobos.lsp.server import create
from tests.ide.answers import ANSWERS
from tests.ide.fixture import cases, document
create()
seen = set()
for case in cases():
    if case.feature not in seen and not case.options:
        seen.add(case.feature)
        ANSWERS[case.feature](document(case.text), [0, 5], {"new": "name"})
heavy = {"numpy", "cupy", "cuda", "ml_dtypes", "rich"} & set(sys.modules)
assert not heavy, heavy
assert len(seen) > 12
"""


def test_the_server_loads_no_array_library_and_no_gpu() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nothing_is_imported_before_it_is_served() -> None:
    code = "import sys, phobos.lsp; assert not {'pygls', 'lsprotocol', 'asyncio'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_worker_knows_no_protocol() -> None:
    code = "import sys, phobos.lsp.worker\nfrom phobos.lsp import jobs\njobs.check('a.ph', '', None, ())\n"
    code += "assert not {'pygls', 'lsprotocol'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_only_this_room_speaks_the_protocol() -> None:
    for path in (ROOT / "phobos").rglob("*.py"):
        if (ROOT / "phobos" / "lsp") not in path.parents:
            text = path.read_text(encoding="utf-8")
            assert "import pygls" not in text and "from pygls" not in text, path
            assert "import lsprotocol" not in text and "from lsprotocol" not in text, path

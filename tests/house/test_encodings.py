"""Text is UTF-8 wherever it is kept or handed on, whatever the console and the system prefer.

Consoles that cannot encode a letter get ASCII; documents for programs keep every letter. No file is opened in the
encoding that the system happens to have.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import phobos

HOUSE = Path(__file__).resolve().parents[2]
BAD = """// Größe 大
@persistent
kernel größe(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  if ctx.block.x == 0 { grid_barrier(BAR) }  // … nur für Block 0
  X[ctx.block.x] = 1.0
}
"""


def started(*words: str, encoding: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(HOUSE), "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    return subprocess.run(
        [sys.executable, "-m", "phobos", *words], capture_output=True, env=environment, cwd=folder, timeout=60
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Größe.ph").write_text(BAD, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_sentences_reach_a_console_that_knows_few_letters(encoding: str, folder: Path) -> None:
    done = started("check", "Größe.ph", "--output-format", "full", encoding=encoding, folder=folder)
    assert (done.returncode, done.stderr) == (1, b"")
    shown = done.stdout.decode(encoding)
    assert "PH203" in shown and ("Größe.ph" if encoding == "cp1252" else "Gr??e.ph") in shown
    carets = next(line for line in shown.splitlines() if "^" in line)
    code = next(line for line in shown.splitlines() if "grid_barrier(BAR)" in line)
    assert carets.index("^") == code.index("grid_barrier")


@pytest.mark.parametrize("form", ["json", "json-lines", "sarif", "gitlab", "junit", "github"])
def test_documents_are_utf8_on_any_console(form: str, folder: Path) -> None:
    narrow = started("check", "Größe.ph", "--output-format", form, encoding="cp1252", folder=folder)
    wide = phobos("check", "Größe.ph", "--output-format", form)
    assert narrow.stdout == wide.stdout.encode()
    assert "Größe.ph" in narrow.stdout.decode("utf-8").replace("%C3%B6%C3%9F", "öß")
    if form == "json":
        assert json.loads(narrow.stdout)[0]["filename"] == "Größe.ph"


def test_formatted_text_and_generated_code_are_utf8_on_any_console(folder: Path) -> None:
    text = BAD.replace("größe", "groesse").replace("X[ctx", "X[ ctx")
    (folder / "k.ph").write_text(text, encoding="utf-8")
    for words in (("fmt", "--diff", "k.ph"), ("emit", "k.ph", "--format", "cuda"), ("run", "k.ph", "--json", "--set",
                  "N=4", "--arg", "X=zeros", "--device", "cpu", "--grid", "1")):  # fmt: skip
        narrow = started(*words, encoding="cp1252", folder=folder)
        wide = phobos(*words)
        if words[0] == "run":  # its times differ
            assert json.loads(narrow.stdout)["outputs"] == json.loads(wide.stdout)["outputs"]
        else:
            assert narrow.stdout == wide.stdout.encode() and narrow.stdout, narrow.stderr


def test_no_file_is_opened_in_the_encoding_of_the_system() -> None:
    """`open`, `read_text` and their like name an encoding, or bytes."""
    unnamed: list[str] = []
    for path in sorted((HOUSE / "phobos").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            built_in = name == "open" and isinstance(node.func, ast.Name)
            modes = [a.value for a in node.args[1:] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            texty = name in ("read_text", "write_text") or (
                (built_in or name == "fdopen") and not any("b" in mode for mode in modes)
            )
            if texty and "encoding" not in {keyword.arg for keyword in node.keywords}:
                unnamed.append(f"{path.relative_to(HOUSE)}:{node.lineno}")
    assert not unnamed


"""Every listing of README and docs is what it says it is: kernels are checked, commands run, Python executed.

A kernel whose first line is `// error PHnnn` must have that error, any other must have neither error nor warning. A
console listing runs its `$ phobos` lines in a copy of the checkout; printed lines are compared, `...` stands for any.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import phobos
from phobos.check.configuration import KEYS
from tests.command import phobos as here

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def listings(kind: str) -> list[object]:
    return list(_listings(kind))


def _listings(kind: str) -> Iterator[object]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(r"^```(\S*)[^\n]*\n(.*?)^```$", text, re.M | re.S):
            if found[1] == kind:
                line = text.count("\n", 0, found.start()) + 1
                yield pytest.param(found[2], id=f"{page.name}:{line}")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a reader has: examples, and nothing above that configures anything."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "kernels").mkdir()
    shutil.copy(ROOT / "examples/saxpy.ph", tmp_path / "kernels")
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_every_kind_of_listing_is_known() -> None:
    """A listing of a kind that nothing runs is prose (`text`), or for another program (`lua`, `elisp`)."""
    known = {"ph", "console", "python", "toml", "yaml", "text", "lua", "elisp", "json", "c"}
    for page in PAGES:
        fences = re.findall(r"^ *```(\S*)", page.read_text(encoding="utf-8"), re.M)
        assert set(fences[::2]) <= known, page.name
        assert not any(fences[1::2]), f"{page.name}: a listing that does not end"


@pytest.mark.parametrize("text", listings("ph"))
def test_kernels_get_the_findings_that_are_said(text: str) -> None:
    said = re.match(r"// error (PH\d+)", text)
    codes = {found.code for found in phobos.check(text) if found.severity != "info"}
    assert codes == ({said[1]} if said else set())


# launching.md's program wants a card: tests/codegen/test_contract_program.py runs it.
SPOKEN = [p for p in PAGES if "```python" in p.read_text(encoding="utf-8") and p.name != "launching.md"]


@pytest.mark.parametrize("page", SPOKEN, ids=lambda page: page.name)
def test_python_runs(page: Path, checkout: Path) -> None:
    """All of a page, as a reader would type it."""
    text = "\n".join(re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PHOBOS_CACHE": str(checkout / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=checkout, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", listings("toml"))
def test_configurations_are_ones(text: str) -> None:
    read = tomllib.loads(text)
    read = read.get("tool", {}).get("phobos", read)
    if "language-server" not in read:  # Helix has its settings in TOML, too
        assert read and set(read) <= set(KEYS)


@pytest.mark.parametrize("text", listings("console"))
def test_commands_print_what_is_shown(text: str, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    for command, shown in commands(text):
        if not command.startswith("phobos "):
            # Other tests run these; a scheduler with certificates, and its workers: tests/cluster/test_foreign.py.
            assert re.match(r"make |pip |dask |export DASK_|CUDA_VISIBLE_DEVICES=\d dask ", command), command
            continue
        command = re.sub(r"\s+#.*", "", command)
        if any(word in command for word in ("h200", "--device cuda", "//HOST")) and not shown:
            continue  # a form, not a run
        words = command.split()[1:]
        done = started(*words) if "--cluster" in words else here(*words)
        assert "usage" not in done.stderr and "unknown option" not in done.stderr and "unrecognized" not in done.stderr
        if shown:
            wanted = re.escape(shown.strip()).replace(re.escape("..."), ".*")
            if "-->" in shown or "  = " in shown:  # shown as on a terminal
                done = here(*words, "--output-format", "full")
            assert re.fullmatch(wanted, done.stdout.strip(), re.S), done.stdout + done.stderr


@pytest.mark.parametrize("text", listings("yaml"))
def test_the_commands_of_jobs_run(text: str, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their form is tests/house/test_ci.py's; here, that the commands of ours in them work as they stand."""
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for command in re.findall(r"\bphobos (?:check|fmt|run) .*", text):
        words = command.split()[1:]
        done = here(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        if "--output-file" in command:
            assert json.loads((checkout / words[words.index("--output-file") + 1]).read_text()) is not None


@pytest.mark.parametrize("text", [one for one in listings("text") if "// run:" in one.values[0]])  # type: ignore[attr-defined]
def test_headers_that_are_shown_are_those_of_examples(text: str) -> None:
    """tests/examples runs every example by its headers."""
    known = {
        line for file in (ROOT / "examples").glob("*.ph") for line in file.read_text(encoding="utf-8").splitlines()
    }
    assert set(text.splitlines()) <= known


def test_the_pictures_of_the_readme_are_there_and_small() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert pictures and all((ROOT / name).stat().st_size < 200_000 for name in pictures)


def started(*words: str) -> subprocess.CompletedProcess[str]:
    """As a process, which ends with all that it has started."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = (sys.executable, "-m", "phobos", *words)
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)


def commands(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        yield command.strip(), shown

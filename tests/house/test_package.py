"""The wheel and the sdist, in empty environments: installed without git, they check, run, format and answer.

`PHOBOS_PYTHONS` names more interpreters, separated by colons; without it the one that runs the tests is tried.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

HOUSE = Path(__file__).resolve().parents[2]
PYTHONS = os.environ.get("PHOBOS_PYTHONS", sys.executable).split(":")
KERNEL = """// run: kernel=fill X=zeros N=8
// expect: X[3] = 1.0
kernel fill(X: tensor<f32>[N]) {
  X[ctx.block.x * 4 :+ 4] = 1.0
}
"""
NOT_OURS = ("__pycache__", ".git", ".venv", ".cache", "node_modules", "build", "*.vsix", ".*_cache")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds a wheel and an sdist, made from a tree that is no repository."""
    tree = tmp_path_factory.mktemp("tree") / "phobos-tools"
    shutil.copytree(HOUSE, tree, ignore=shutil.ignore_patterns(*NOT_OURS))
    out = tmp_path_factory.mktemp("dist")
    quiet(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(tree))
    return out


def quiet(*words: str, **more: object) -> str:
    alone = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    alone["PATH"] = "/usr/bin:/bin"
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, **{"env": alone, **more})  # type: ignore[call-overload]
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return str(done.stdout)


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"phobos", "phobos_tools"}
    assert {"phobos/py.typed", "phobos/syntax/grammar.lark", "phobos/codegen/contract.schema.json"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_sdist_holds_what_make_needs(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"Makefile", "README.md", "CHANGELOG.md", "tests/stages.py", "examples/staged.ph", "phobos/py.typed"}
    assert wanted <= names


@pytest.mark.parametrize("python", PYTHONS)
def test_both_work_in_an_empty_environment(python: str, built: Path, tmp_path: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    quiet(python, "-m", "venv", str(tmp_path / "env"))
    inside = str(tmp_path / "env/bin/python")
    install = (inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    quiet(*install, str(wheel))
    works(inside, tmp_path)
    quiet(*install, "--force-reinstall", "--no-deps", str(sdist))
    works(inside, tmp_path)


def works(python: str, folder: Path) -> None:
    (folder / "fill.ph").write_text(KERNEL)
    phobos = str(Path(python).with_name("phobos"))
    assert quiet(phobos, "--version").startswith("phobos ")
    assert "1 file checked" in quiet(phobos, "check", "fill.ph", cwd=folder)
    assert "expectation met" in quiet(phobos, "run", "fill.ph", cwd=folder)
    assert "already formatted" in quiet(phobos, "fmt", "--check", "fill.ph", cwd=folder)
    assert "PH205" in quiet(phobos, "rule", "PH205")
    for rule in json.loads(quiet(phobos, "rule", "--all", "--output-format", "json")):
        page = Path(unquote(urlsplit(rule["url"]).path))  # links open something, in this very installation
        assert page.is_relative_to(Path(python).parents[1]) and rule["code"] in page.read_text(encoding="utf-8")
    assert "phobos-tools[nvrtc]" in quiet(phobos, "doctor")  # without extras it says what is missing
    program = "import phobos; print(phobos.check('kernel k() { x }')[0].code)"
    assert quiet(python, "-c", program, cwd=folder).strip().startswith("PH")

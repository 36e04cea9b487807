"""The wheel and the sdist, in empty environments: installed without git, they check, run, format and answer.

`PHOBOS_PYTHONS` names more interpreters, separated by colons; without it the one that runs the tests is tried.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

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
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout that is no repository."""
    tree = tmp_path_factory.mktemp("tree") / "phobos-tools"
    shutil.copytree(HOUSE, tree, ignore=shutil.ignore_patterns(*NOT_OURS))
    return tree


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds a wheel and an sdist, made from that tree."""
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


def test_the_sdist_is_text_and_pictures(built: Path) -> None:
    """An archive of the tree was once committed beside it and went along."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = [each for each in archive.getmembers() if each.isfile() and not each.name.endswith(".png")]
        binary = [each.name for each in files if b"\0" in archive.extractfile(each).read()]  # type: ignore[union-attr]
    assert binary == []


@pytest.fixture(scope="module", params=PYTHONS)
def inside(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment in which the wheel is installed."""
    (wheel,) = built.glob("*.whl")
    folder = tmp_path_factory.mktemp("empty")
    quiet(request.param, "-m", "venv", str(folder / "env"))
    python = str(folder / "env/bin/python")
    quiet(python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", str(wheel))
    return python


def test_the_wheel_works_in_an_empty_environment(inside: str, tmp_path: Path) -> None:
    works(inside, tmp_path)


def test_the_sdist_installs_what_the_wheel_holds(inside: str, built: Path) -> None:
    (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
    install = (inside, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check")
    quiet(inside, "-m", "pip", "uninstall", "--quiet", "--yes", "--disable-pip-version-check", "phobos-tools")
    quiet(*install, "--no-deps", str(sdist))
    site = Path(quiet(inside, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if name.startswith("phobos/")}
    paths = [path for path in (site / "phobos").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert {path.relative_to(site).as_posix(): path.read_bytes() for path in paths} == held
    assert quiet(str(Path(inside).with_name("phobos")), "--version").startswith("phobos ")


def test_the_steps_of_the_action_install_and_check(inside: str, tree: Path, tmp_path: Path) -> None:
    """What a server would run, with its way of running bash; inputs as it would put them into the environment."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/fill.ph").write_text(KERNEL)
    assert acted(inside, tree, tmp_path) == (0, "")
    (tmp_path / "more.ph").write_text((HOUSE / "examples/hang.ph").read_text())
    code, said = acted(inside, tree, tmp_path, again=True, paths="kernels more.ph")
    assert code == 1 and said.startswith("::error ") and "file=more.ph,line=19" in said and "PH205" in said
    arguments = "--ignore PH205"
    assert acted(inside, tree, tmp_path, again=True, paths="kernels more.ph", arguments=arguments) == (0, "")


def acted(python: str, tree: Path, folder: Path, again: bool = False, **inputs: str) -> tuple[int, str]:
    """Exit code and annotations of the steps of `action.yml` for a checkout in `folder`; `again`: it has installed."""
    action = yaml.safe_load((tree / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    values = {f"inputs.{name}": inputs.pop(name, entry["default"]) for name, entry in action["inputs"].items()}
    values["github.action_path"] = str(tree)
    assert not inputs, "the action has no such input"
    said = ""
    for step in action["runs"]["steps"][1 if again else 0 :]:
        assert step["shell"] == "bash"
        given = {name: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: values[m[1]], text) for name, text in step["env"].items()}
        assert "${{" not in step["run"], "an input in a script is a hole: it belongs in the environment"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env={**given, "PATH": f"{Path(python).parent}:/usr/bin:/bin", "GITHUB_ACTIONS": "true"},
            cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        said += "".join(line + "\n" for line in done.stdout.splitlines() if line.startswith("::"))
        if done.returncode:
            return done.returncode, said + done.stderr
    return 0, said


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

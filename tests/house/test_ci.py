"""The files for CI that this repository has, writes and shows are what GitHub and GitLab take, by published schemas.

No server has run them from here. What can be known without one is their form, and (in test_package) what the steps of
`action.yml` do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from phobos.cli.init import CI

ROOT = Path(__file__).resolve().parents[2]


def refusal(schema: str, *files: Path) -> str:
    """What the schema has against the files; empty if they are fine. The schemas come with the package: no network."""
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, files)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """The jobs that docs/ci.md shows and `phobos init` writes, as files, by the schema that is theirs."""
    folder = tmp_path_factory.mktemp("jobs")
    texts = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/ci.md").read_text(encoding="utf-8"), re.M | re.S)
    texts += [job[1] for job in CI.values() if job]
    sorted_out: dict[str, list[Path]] = {"github-workflows": [], "gitlab-ci": []}
    for number, text in enumerate(texts):
        file = folder / f"job{number}.yml"
        file.write_text(text, encoding="utf-8")
        sorted_out["github-workflows" if re.search(r"^on:", text, re.M) else "gitlab-ci"].append(file)
    return sorted_out


def test_the_workflows_are_ones(shown: dict[str, list[Path]]) -> None:
    ours = sorted((ROOT / ".github/workflows").glob("*.yml"))
    assert len(ours) == 3 and len(shown["github-workflows"]) == 3
    assert not refusal("github-workflows", *ours, *shown["github-workflows"])


def test_the_jobs_for_gitlab_are_ones(shown: dict[str, list[Path]]) -> None:
    assert len(shown["gitlab-ci"]) == 2
    assert not refusal("gitlab-ci", *shown["gitlab-ci"])


def test_the_action_is_one() -> None:
    assert not refusal("github-actions", ROOT / "action.yml")


def test_the_hooks_for_pre_commit_run_and_are_those_that_are_shown(tmp_path: Path) -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    shown = re.findall(r"- id: (\S+)", (ROOT / "docs/cli.md").read_text(encoding="utf-8"))
    assert set(shown) == set(hooks)
    names = ("kernel.ph", "--output-file=other.ph")
    for name in names:
        shutil.copy(ROOT / "examples/saxpy.ph", tmp_path / name)
    for hook in hooks.values():
        assert re.search(hook["files"], "kernels/kernel.ph")
        words = [sys.executable, "-m", *hook["entry"].split(), *hook["args"], *names]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0 and "2 files" in done.stdout, done.stdout + done.stderr


def test_a_mistake_would_be_seen(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    wrong.write_text(text.replace("runs-on", "runs_on"), encoding="utf-8")
    assert "runs_on" in refusal("github-workflows", wrong)

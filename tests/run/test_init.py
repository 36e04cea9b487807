"""`phobos init`: what it writes passes its own checks, and nothing that is there is touched."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from phobos.check.configuration import KEYS
from phobos.cli import main
from phobos.cli.init import CI, CONFIGURATION


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)  # an end for the search of configurations above
    return tmp_path


@pytest.mark.parametrize("ci", sorted(CI))
def test_what_it_writes_is_checked_formatted_and_runs(
    ci: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "--ci", ci]) == 0
    assert main(["check", ".", "--severity", "warning"]) == 0
    assert main(["fmt", "--check", "."]) == 0
    assert main(["run", "kernels/neighbours.ph", "--device", "cpu", "--detect", "races"]) == 0
    assert capsys.readouterr().out.count("expectation met") == 3
    job = CI[ci]
    assert [str(p.relative_to(folder)) for p in folder.rglob("*.yml")] == ([job[0]] if job else [])


def test_the_samples_barrier_is_needed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    kernel = folder / "kernels/neighbours.ph"
    kernel.write_text(kernel.read_text().replace("  grid_barrier(BAR)\n", ""))
    assert main(["check", "."]) == 1
    assert "PH501" in capsys.readouterr().out


def test_what_is_there_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "phobos.toml").write_text("ignore = ['PH506']\n")
    assert main(["init", "--ci", "gitlab"]) == 0
    assert "kept    phobos.toml" in capsys.readouterr().out
    assert (folder / "phobos.toml").read_text() == "ignore = ['PH506']\n"
    assert main(["init", "--ci", "gitlab"]) == 0
    assert capsys.readouterr().out.count("kept") == 3


def test_a_link_to_nothing_is_somebodys(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Through it a file would be made outside of the folder."""
    (folder / "inside").mkdir()
    (folder / "inside/phobos.toml").symlink_to(folder / "outside.toml")
    assert main(["init", "inside"]) == 0
    assert "kept    inside/phobos.toml" in capsys.readouterr().out and not (folder / "outside.toml").exists()


def test_the_commands_that_it_names_can_be_typed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "my kernels"]) == 0
    assert "phobos check 'my kernels', phobos run 'my kernels/kernels/neighbours.ph'" in capsys.readouterr().out


def test_a_file_where_the_folder_should_be(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "taken").write_text("")
    assert main(["init", "taken"]) == 2
    assert "taken" in capsys.readouterr().err


def test_the_commented_settings_are_real_ones() -> None:
    said = "\n".join(
        line.removeprefix("# ") for line in CONFIGURATION.splitlines() if " = " in line
    )  # fmt: skip
    assert set(tomllib.loads(said)) <= set(KEYS) and len(tomllib.loads(said)) == 5

"""What a skip means, and that the sum at the end of `make test` is right."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import card_present
from tests.stages import counts

HERE = Path(__file__).resolve().parent
TESTS = """
import pytest

def test_fine():
    pass

def test_wants_something():
    pytest.importorskip("a_module_that_is_not_there")

@pytest.mark.gpu
def test_wants_a_card():
    pytest.skip("no card")
"""


def run(folder: Path, ci: str, *options: str) -> tuple[int, str, Path]:
    (folder / "conftest.py").write_text((HERE / "conftest.py").read_text())
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = gpu: needs a card\n")
    (folder / "test_some.py").write_text(TESTS)
    report = folder / "report.xml"
    words = [f"--junit-xml={report}", "-p", "no:cacheprovider", "-rs", *options, str(folder)]
    own = {"CI": ci, "PYTHONPATH": str(HERE.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # half of its start
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=folder, env={**os.environ, **own}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, report


def test_on_a_desk_a_skip_is_a_skip(tmp_path: Path) -> None:
    code, said, report = run(tmp_path, "")
    assert code == 0, said
    assert counts(report) == (1, 0, 2)


@pytest.mark.skipif(card_present(), reason="there is a CUDA device")
def test_without_a_card_a_test_of_the_folder_of_cards_is_skipped_and_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "cuda"
    folder.mkdir()
    (folder / "conftest.py").write_text((HERE / "cuda" / "conftest.py").read_text())
    (folder / "test_card.py").write_text("def test_on_a_card():\n    raise AssertionError('it ran')\n")
    code, said, report = run(tmp_path, "true", "--deselect", "test_some.py::test_wants_something")
    assert code == 0, said
    assert counts(report) == (1, 0, 2) and "no CUDA device" in said and "it ran" not in said


def test_in_ci_a_skip_fails_except_for_want_of_a_card(tmp_path: Path) -> None:
    code, said, report = run(tmp_path, "true")
    assert code == 1
    assert counts(report) == (1, 1, 1)
    assert "a_module_that_is_not_there" in said


def test_where_a_card_is_expected_its_want_fails(tmp_path: Path) -> None:
    code, said, report = run(tmp_path, "", "--gpu", "-m", "gpu")
    assert code == 1
    assert counts(report) == (0, 1, 0)
    assert "no card" in said


def test_no_report_counts_as_nothing(tmp_path: Path) -> None:
    assert counts(tmp_path / "none.xml") == (0, 0, 0)


@pytest.mark.parametrize("stage", ["lint", "unit", "editors", "gpu"])
def test_every_stage_has_a_command(stage: str, tmp_path: Path) -> None:
    from tests.stages import commands

    assert all(command[0] == sys.executable for command in commands(stage, tmp_path / "report.xml"))

"""The corpus of correct kernels: each gives what it should under every scheduler, and the checker leaves it alone."""

from pathlib import Path

import pytest

from phobos.check import findings
from phobos.check.configuration import DEFAULT
from phobos.cli import main

FILES = sorted(Path(__file__).parent.glob("*.ph"))
each = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_there_are_at_least_thirty() -> None:
    assert len(FILES) >= 30


@each
def test_says_how_to_run_it_and_what_comes_out(path: Path) -> None:
    text = path.read_text()
    assert text.count("// run: ") >= 2
    assert text.count("// expect: ") >= 2
    assert "fault=" not in text


def schedules() -> list[object]:
    """The adversarial scheduler for all; the others too where the order of atomics can matter."""
    pairs = []
    for path in FILES:
        waits = "atomic_" in path.read_text()
        for scheduler in ["adversarial", *(["round-robin", "random"] if waits else [])]:
            pairs.append(pytest.param(path, scheduler, id=f"{path.stem}-{scheduler}"))
    return pairs


@pytest.mark.parametrize(("path", "scheduler"), schedules())
def test_gives_its_result_without_a_race(path: Path, scheduler: str, capsys: pytest.CaptureFixture[str]) -> None:
    detect = ["--detect", "races,deadlock,uninitialised,bounds", "--scheduler", scheduler, "--seed", "7"]
    code = main(["run", str(path), "--device", "cpu", *detect])
    said = capsys.readouterr()
    assert code == 0, said.out + said.err
    assert said.out.count("expectation met") == path.read_text().count("// expect: ")


@each
def test_gives_its_result_in_batches(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", str(path), "--device", "cpu"])
    said = capsys.readouterr()
    assert code == 0, said.out + said.err


@each
def test_no_false_alarm(path: Path) -> None:
    found = findings(str(path), path.read_text(), DEFAULT)
    loud = [f"{d.code} {d.severity}: {d.message}" for d in found if d.severity != "info"]
    assert loud == []

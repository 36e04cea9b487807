"""The stages of `make test`: runs those named, one after another, whatever the earlier ones said; prints the seconds
of each and closes with one line that adds up what all their tests did. Stages joined by a plus sign run side by side:
the editors' tests wait for a browser most of the time, while the others want the processor.

The exit status is 0 only if every stage passed. Standard library alone, so that `make test-gpu` can use any Python.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent


def pytest(report: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", f"--junit-xml={report}", *arguments]


def commands(stage: str, report: Path) -> list[list[str]]:
    """The command lines of a stage; those that run tests leave their counts in `report`."""
    match stage:
        case "lint":
            return [
                [sys.executable, "-m", "ruff", "check", "."],
                [sys.executable, "-m", "mypy"],
            ]
        case "unit":
            workers = str(min(os.cpu_count() or 1, 8))
            spread = ["-n", workers, "--dist", "loadgroup"]  # a group (`xdist_group`) shares what is dear to set up
            return [pytest(report, *spread, "-m", "not gpu", "--ignore=tests/editors", "tests")]
        case "editors":
            return [pytest(report, "tests/editors")]
        case "gpu":
            # The interpreter is the caller's: what its packages, or plug-ins it lacks, warn of is no failure of ours.
            return [pytest(report, "-W", "default", "--gpu", "tests/cuda")]
    raise SystemExit(f"stages.py: there is no stage {stage!r}; there are lint, unit, editors and gpu")


NEEDED_ON_A_CARD = ("pytest", "lark", "pathspec", "platformdirs", "threadpoolctl", "numpy", "ml_dtypes", "cuda")


def missing() -> list[str]:
    """What the interpreter lacks to run the tests that need a card; nothing is installed into it."""
    return [name for name in NEEDED_ON_A_CARD if importlib.util.find_spec(name) is None]


def counts(report: Path) -> tuple[int, int, int]:
    """Tests passed, failed and skipped according to a JUnit report; nothing if none was written."""
    if not report.exists():
        return 0, 0, 0
    passed = failed = skipped = 0
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        away = int(suite.get("skipped", 0))
        failed += bad
        skipped += away
        passed += int(suite.get("tests", 0)) - bad - away
    return passed, failed, skipped


def run(stage: str, report: Path, said: IO[str] | None) -> tuple[str, int]:
    """A line about the stage and its worst exit status. What its commands print goes to `said`, if that is given."""
    start = time.monotonic()
    status = 0
    for command in commands(stage, report):
        status = max(status, abs(subprocess.run(command, cwd=ROOT, check=False, stdout=said, stderr=said).returncode))
    return f"{stage:<8} {time.monotonic() - start:6.1f} s  {'passed' if status == 0 else 'FAILED'}", status


def side_by_side(stages: list[str], folder: Path) -> list[tuple[str, int]]:
    """The last of the stages prints as it goes; what the others print follows when all are done."""
    print(f"== {' and '.join(stages)}", flush=True)
    with ThreadPoolExecutor(len(stages)) as pool, ExitStack() as files:
        kept = [files.enter_context((folder / f"{stage}.txt").open("w+")) for stage in stages[:-1]]
        reports = [folder / f"{stage}.xml" for stage in stages]
        ended = list(pool.map(run, stages, reports, [*kept, None]))
        for stage, said in zip(stages, kept, strict=False):
            said.seek(0)
            print(f"== {stage}\n{said.read()}", flush=True)
    return ended


def main(arguments: list[str]) -> int:
    groups = [argument.split("+") for argument in arguments]
    stages = [stage for group in groups for stage in group]
    if "gpu" in stages and missing():
        print(f"{sys.executable} lacks {', '.join(missing())}: pip install '.[dev,gpu]' puts them there")
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stage in stages:
            commands(stage, folder)  # one that does not exist is said before anything runs
        ended = [one for group in groups for one in side_by_side(group, folder)]
        sums = zip(*(counts(folder / f"{stage}.xml") for stage in stages), strict=True)
        total = [sum(column) for column in sums]
    print("\n" + "\n".join(line for line, _ in ended))
    print("{} passed, {} failed, {} skipped".format(*total))
    return 1 if any(status for _, status in ended) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

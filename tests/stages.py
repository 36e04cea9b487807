"""The stages of `make test`: runs those named, one after another, whatever the earlier ones said; prints the seconds
of each and closes with one line that adds up what all their tests did.

The exit status is 0 only if every stage passed. Standard library alone, so that `make test-gpu` can use any Python.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def pytest(report: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", f"--junit-xml={report}", *arguments]


def commands(stage: str, report: Path) -> list[list[str]]:
    """The command lines of a stage; those that run tests leave their counts in `report`."""
    match stage:
        case "lint":
            return [
                [sys.executable, "-m", "ruff", "check", "."],
                [sys.executable, "-m", "mypy", "-p", "phobos"],
            ]
        case "unit":
            workers = str(min(os.cpu_count() or 1, 8))
            return [pytest(report, "-n", workers, "-m", "not gpu", "--ignore=tests/editors", "tests")]
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


def main(stages: list[str]) -> int:
    if "gpu" in stages and missing():
        print(f"{sys.executable} lacks {', '.join(missing())}: pip install '.[dev,gpu]' puts them there")
        return 2
    lines = []
    total = [0, 0, 0]
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        for stage in stages:
            print(f"== {stage}", flush=True)
            report = Path(folder) / f"{stage}.xml"
            start = time.monotonic()
            status = 0
            for command in commands(stage, report):
                status = max(status, abs(subprocess.run(command, cwd=ROOT, check=False).returncode))
            lines.append(f"{stage:<8} {time.monotonic() - start:6.1f} s  {'passed' if status == 0 else 'FAILED'}")
            total = [a + b for a, b in zip(total, counts(report), strict=True)]
            worst = max(worst, status)
    print("\n" + "\n".join(lines))
    print("{} passed, {} failed, {} skipped".format(*total))
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Every kernel that is good, on the card against the reference runtime, as its header says to run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from phobos.runtime.given import arguments, constants_in
from phobos.runtime.headers import runs_of
from phobos.runtime.kernel import Kernels
from phobos.runtime.options import LaunchOptions
from phobos.runtime.session import Request, perform

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("examples/*.ph"), *ROOT.glob("tests/corpus/*.ph"), *ROOT.glob("tests/cuda/kernels/*.ph")])
FEWER = {"conjugate_gradient": {"STEPS": "6"}}  # after more, what is left of the residual is rounding alone
RUNS = [
    (path, number)
    for path in FILES
    for number, run in enumerate(runs_of(str(path), path.read_text()))
    if run.fault is None
]


@pytest.mark.parametrize(("path", "number"), RUNS, ids=[f"{path.stem}-{number}" for path, number in RUNS])
def test_agrees_with_the_reference(path: Path, number: int) -> None:
    text = path.read_text()
    run = runs_of(str(path), text)[number]
    kernel = Kernels(str(path), text).one(run.kernel)
    grid = run.options.get("grid")
    request = Request(
        kernel=kernel, names={**run.names, **FEWER.get(path.stem, {})}, directory=str(path.parent),
        command_line=frozenset(), outputs={}, device="cuda",
        grid=None if grid in (None, "auto") else tuple(int(n) for n in grid.split(",")), resident=None,
        schedule=None, l2_group=None, keep=True, repeat=1, timeout=20.0, debug=False, unchecked=False, scheduler=None,
        seed=0, detect=(), plan_only=False, verify=True, tuned=False, expectations=(),
    )  # fmt: skip
    report = perform(request)
    assert report.code == 0, report.text(False)
    assert report.verified is not None and report.verified[1]


__all__ = ["LaunchOptions", "arguments", "constants_in"]

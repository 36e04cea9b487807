"""Races on the card: planted ones are found where they are, correct kernels are quiet, random ones as the judge says.

`PHOBOS_TRUTH=N` says how many seeds are tried (default 600), `PHOBOS_TRUTH_FIRST` which is the first.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import pytest

from phobos.cli import main
from phobos.errors import CheckError, KernelFault, LaunchError
from phobos.runtime.binding import barrier_tensors
from phobos.runtime.cuda import detection, driver
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.given import arguments
from phobos.runtime.headers import runs_of
from phobos.runtime.kernel import Kernels, kernel
from phobos.runtime.session import Request, perform
from tests.codegen.planted_races import ALIKE, PLANTED, Planted
from tests.cuda.test_conformance import FEWER, RUNS
from tests.cuda.test_truth import one_result, over_processes
from tests.truth.generator import generate

pytestmark = pytest.mark.gpu
SEEDS = int(os.environ.get("PHOBOS_TRUTH", "600"))
FIRST = int(os.environ.get("PHOBOS_TRUTH_FIRST", "0"))


def launched(planted: Planted) -> dict[str, DeviceArray]:
    there = {name: DeviceArray(array, 0) for name, array in planted.made().items()}
    planted.kernel()(
        **there, **planted.numbers, grid=planted.grid, detect="races", unchecked=True, timeout=10.0, **planted.options
    )
    return there


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_race_is_found_every_time(planted: Planted) -> None:
    for _ in range(20):
        with pytest.raises(KernelFault) as fault:
            launched(planted)
        assert fault.value.kind == "race" and len(fault.value.blocks) == 2
        assert fault.value.diagnostic is not None
        assert planted.told(fault.value.diagnostic) == planted.lines
        assert all(word in str(fault.value) for word in planted.does)


LONE = """
@launch(256)
kernel lone(X: tensor<f32>[N], Y: tensor<f32>[N], at: i64) {
  let s = ctx.block.x * 1024
  Y[s :+ 1024] = X[s :+ 1024] * 2.0
  if ctx.block.x == at {
    Y[s + 1024] = 5.0
  }
}
"""

LATE = """
@launch(256)
@persistent
kernel late(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let b = ctx.block.x
  for stage in range(0, 40) {
    for t in range(b * 1024, N, ctx.blocks.x * 1024) {
      X[t :+ 1024] = X[t :+ 1024] * 0.5 + 1.0
    }
    if stage == 37 && b == 3 {
      X[12345678] = 7.0
    }
    grid_barrier(BAR)
  }
}
"""


def test_one_cell_of_sixteen_million() -> None:
    x = DeviceArray(numpy.ones(2**24, numpy.float32), 0)
    y = DeviceArray(numpy.ones(2**24, numpy.float32), 0)
    with pytest.raises(KernelFault, match=r"different values to Y\[9216000\]") as fault:
        kernel(LONE)(x, y, at=8999, detect="races", unchecked=True)
    assert fault.value.blocks == (8999, 9000)
    kernel(LONE)(x, y, at=-1, detect="races", unchecked=True)


def test_one_cell_in_the_thirty_eighth_phase() -> None:
    x = DeviceArray(numpy.ones(2**24, numpy.float32), 0)
    with pytest.raises(KernelFault, match=r"X\[12345678\]") as fault:
        kernel(LATE)(x, detect="races", unchecked=True, timeout=20.0)
    assert fault.value.blocks[0] == 3 and fault.value.diagnostic is not None
    assert "in phase 37 (37 barriers passed before)" in fault.value.diagnostic.notes[0]


@pytest.mark.parametrize("planted", ALIKE, ids=lambda planted: planted.name)
@pytest.mark.parametrize("most", [detection.MOST_PHASES, 3, 1])
def test_what_is_no_race_is_quiet(monkeypatch: pytest.MonkeyPatch, planted: Planted, most: int) -> None:
    monkeypatch.setattr(detection, "MOST_PHASES", most)
    want = planted.made()
    planted.kernel().reference(**want, grid=planted.grid, detect="races")
    for _ in range(20):
        for name, array in launched(planted).items():
            numpy.testing.assert_array_equal(array.numpy(), want[name])


@pytest.mark.parametrize(("path", "number"), RUNS, ids=[f"{path.stem}-{number}" for path, number in RUNS])
def test_a_correct_kernel_is_quiet_and_right(path: Path, number: int) -> None:
    text = path.read_text()
    run = runs_of(str(path), text)[number]
    grid = run.options.get("grid")
    request = Request(
        kernel=Kernels(str(path), text).one(run.kernel), names={**run.names, **FEWER.get(path.stem, {})},
        directory=str(path.parent), command_line=frozenset(), outputs={}, device="cuda",
        grid=None if grid in (None, "auto") else tuple(int(n) for n in grid.split(",")), resident=None,
        schedule=None, l2_group=None, keep=True, repeat=3, timeout=20.0, debug=False, unchecked=False, scheduler=None,
        seed=0, detect=("races",), plan_only=False, verify=True, tuned=False, expectations=(),
    )  # fmt: skip
    report = perform(request)
    assert report.code == 0, report.text(False)
    assert report.verified is not None and report.verified[1]
    assert report.search is not None
    print(f"\n{path.stem}: {report.search}")


def test_the_command_says_what_and_where_and_what_it_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted = next(one for one in PLANTED if one.name == "halo without a barrier")
    file = tmp_path / "halo.ph"
    file.write_text(planted.text)
    words = ["run", str(file), "--device", "cuda", "--detect", "races", "--unchecked", "--json", "--grid", "4"]
    assert main([*words, "--set", "N=1000", "--arg", "X=iota", "--arg", "Y=zeros"]) == 1
    fault = json.loads(capsys.readouterr().out)["fault"]
    assert fault["kind"] == "race" and fault["code"] == "PH501" and len(fault["blocks"]) == 2
    assert {fault["location"]["row"], *(one["location"]["row"] for one in fault["related"])} == planted.lines
    assert main(["run", "examples/staged.ph", "--device", "cuda", "--detect", "races", "--json"]) == 0
    search = json.loads(capsys.readouterr().out)[0]["search"]
    assert search["races"] == 0 and search["shadow_bytes"] > 0 and search["elapsed_ms"] > 0


def test_the_same_launch_again_looks_again(cupy: Any) -> None:
    planted = next(one for one in PLANTED if one.name == "ragged")
    made, x = planted.kernel(), cupy.zeros(150, cupy.float32)
    for _ in range(3):
        with pytest.raises(KernelFault, match="different values"):
            made(x, 0, grid=4, unchecked=True, detect="races")
        made(x, 0, grid=4, unchecked=True)
        made(x, 0, grid=1, unchecked=True, detect="races")


def test_a_persistent_grid_stays_what_it_is() -> None:
    x = DeviceArray(numpy.ones((1, 2**24), numpy.float32), 0)
    made = Kernels("examples/staged.ph", Path("examples/staged.ph").read_text()).one("staged")
    assert made.plan(x, detect="races", tuned=False).grid == made.plan(x, tuned=False).grid


def test_more_shadows_than_memory_are_refused() -> None:
    planted = next(one for one in PLANTED if one.name == "ragged")
    held = driver.free_bytes
    try:
        driver.free_bytes = lambda: 1000
        with pytest.raises(LaunchError, match=r"needs 4.688 KiB of shadows, and the device has 1 000 bytes free"):
            launched(planted)
    finally:
        driver.free_bytes = held


# --- random kernels ---------------------------------------------------------------------------------------


def outcome_of(seed: int) -> tuple[str, str]:
    """What the judge says of a seed and what the card says: `quiet`, `false`, `differs`, `found`, `missed`, `other`;
    `atomic` before it where the kernel orders blocks by atomics."""
    sample = generate(seed)
    made = Kernels("<text>", sample.text).one(sample.kernel)
    sizes = {name: values[len(values) // 2] for name, values in sample.sizes.items()}
    numbers = {name: values[0] for name, values in sample.parameters.items()}
    names = {**sample.fills, **{n: str(v) for n, v in {**sizes, **numbers}.items()}}
    grid = 5 if sample.persistent else None
    races, host = False, None
    try:
        given = arguments(made.analysed()[1].program, names, seed, dict.fromkeys(names, "."), {})
        host = one_result(made, given, grid, sample.uses_atomics)
    except (CheckError, LaunchError):
        return "refused", ""
    except KernelFault as fault:
        if fault.kind != "race":
            return "faulty", ""
        races = True
    before = "atomic " if sample.uses_atomics else ""
    card = {name: DeviceArray(array, 0) for name, array in given.arrays.items()}
    try:
        made(**card, **given.numbers, grid=grid, timeout=10.0, unchecked=True, detect="races,bounds")
    except (CheckError, LaunchError):
        return "refused", ""
    except KernelFault as fault:
        if races:
            return before + ("found" if fault.kind == "race" else "other"), str(fault)
        return "false", str(fault)
    if races:
        return before + "missed", "the judge sees a race, the card none"
    if host is None:
        return "several", ""
    for name, want in host.items():
        if name not in barrier_tensors(made.analysed()[1].program):
            got = card[name].numpy().astype(numpy.float64)
            if not numpy.allclose(got, want.astype(numpy.float64), rtol=1e-3, atol=1e-4, equal_nan=True):
                return "differs", f"{name} differs, by up to {numpy.nanmax(numpy.abs(got - want)):.3g}"
    return "quiet", ""


def test_random_kernels_are_judged_as_the_reference_judges_them() -> None:
    known = over_processes(outcome_of, range(FIRST, FIRST + SEEDS))
    counts = Counter(kind for kind, _ in known.values())
    print(f"\n{dict(counts)} of {SEEDS} seeds from {FIRST} on")
    for kind in ("missed", "other", "atomic missed"):
        print(kind, [seed for seed, (one, _) in known.items() if one == kind][:20])
    wrong = [f"seed {seed}: {said}" for seed, (kind, said) in known.items() if kind in ("false", "differs")]
    assert not wrong, "\n".join(wrong[:20])
    assert counts["quiet"] > SEEDS // 10
    assert counts["missed"] <= counts["found"] // 50  # without atomics the search misses nothing by its nature

"""Races found by the emitted text, run on this machine: which, where, and that all else is as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from phobos.cli import main
from phobos.errors import KernelFault, LaunchError
from phobos.lowering.options import RACES, Options
from phobos.runtime import device as devices
from phobos.runtime.cuda import detection
from phobos.runtime.kernel import kernel
from tests.codegen import host
from tests.codegen.compare import emitted, read
from tests.codegen.fake_device import FakeDriver, HostArray
from tests.codegen.planted_races import ALIKE, PLANTED, Planted

ON_A_CARD = ("of bf16", "of i8", "of u8", "of i32", "of i64")
FEWER = [one for one in PLANTED if one.name not in ON_A_CARD]

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return FakeDriver(monkeypatch)


def launched(planted: Planted, arrays: dict[str, numpy.ndarray]) -> None:
    there = {name: HostArray(array) for name, array in arrays.items()}
    planted.kernel()(
        **there, **planted.numbers, grid=planted.grid, detect="races", unchecked=True, timeout=5.0, **planted.options
    )


@pytest.mark.parametrize("planted", FEWER, ids=lambda planted: planted.name)
def test_a_planted_race_is_found_where_the_reference_finds_it(device: FakeDriver, planted: Planted) -> None:
    device.order = 2
    with pytest.raises(KernelFault) as fault:
        launched(planted, planted.made())
    assert fault.value.kind == "race" and len(fault.value.blocks) == 2
    assert fault.value.diagnostic is not None
    assert planted.told(fault.value.diagnostic) == planted.lines
    assert all(word in str(fault.value) for word in planted.does)
    options = dict(planted.options)
    with pytest.raises(KernelFault) as judged:
        planted.kernel().reference(
            **planted.made(), **planted.numbers, grid=planted.grid, detect="races", **options
        )
    assert judged.value.kind == "race" and judged.value.diagnostic is not None
    assert planted.told(judged.value.diagnostic) == planted.lines


@pytest.mark.parametrize("planted", ALIKE, ids=lambda planted: planted.name)
@pytest.mark.parametrize("most", [detection.MOST_PHASES, 3, 1])
def test_what_is_no_race_is_quiet(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch, planted: Planted, most: int
) -> None:
    monkeypatch.setattr(detection, "MOST_PHASES", most)
    device.order = 3
    arrays, want = planted.made(), planted.made()
    launched(planted, arrays)
    planted.kernel().reference(**want, grid=planted.grid, detect="races")
    for name, array in arrays.items():
        numpy.testing.assert_array_equal(array, want[name])


def test_the_plan_says_what_it_takes_and_what_is_off(device: FakeDriver) -> None:
    x = HostArray(numpy.zeros((1, 20480), numpy.float32))
    plan = str(kernel(read("examples/staged.ph")).plan(x, detect="races"))
    assert "a shadow of `X`: 640 KiB" in plan
    assert "nothing stays on chip" in plan


def test_a_persistent_grid_stays_what_it_is(device: FakeDriver) -> None:
    """The search needs registers, and a grid is what fits: the compiler is told how many CTAs must fit."""
    made, x = kernel(read("examples/staged.ph")), HostArray(numpy.zeros((1, 20480), numpy.float32))
    assert made.plan(x, detect="races").grid == made.plan(x).grid
    looking = [one.text for one in device.functions if "ph_races" in one.text]
    assert looking and all("__launch_bounds__(256, 2)" in text for text in looking)


def test_shadows_that_do_not_fit_are_refused(device: FakeDriver) -> None:
    device.free_bytes = 600_000
    made = kernel(read("examples/staged.ph"))
    with pytest.raises(LaunchError, match=r"needs 640 KiB of shadows, and the device has 585.9 KiB free"):
        made(HostArray(numpy.zeros((1, 20480), numpy.float32)), detect="races")
    assert device.launches == []
    made(HostArray(numpy.zeros((1, 20480), numpy.float32)))


# --- the command ------------------------------------------------------------------------------------------------

OUTSIDE = """
@launch(32)
kernel outside(X: tensor<f32>[N], at: i64) {
  X[at] = 1.0
}
"""


@pytest.fixture
def run(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str]]:
    monkeypatch.setattr(devices, "driver", lambda: (1, "this machine answers"))

    def go(text: str, *words: str) -> tuple[int, str]:
        file = tmp_path / "k.ph"
        file.write_text(text)
        code = main(["run", str(file), "--device", "cuda", *words])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return go


def test_the_command_tells_a_race_as_it_tells_other_faults(run: Callable[..., tuple[int, str]]) -> None:
    planted = next(one for one in PLANTED if one.name == "halo without a barrier")
    words = ["--set", "N=1000", "--arg", "X=iota", "--arg", "Y=zeros", "--grid", "4", "--detect", "races"]
    words.append("--unchecked")
    code, out = run(planted.text, *words, "--json")
    report = json.loads(out)
    fault = report["fault"]
    assert report["plan"]["grid"] == [4, 1, 1] and report["search"] is None
    assert code == 1 and fault["kind"] == "race" and fault["code"] == "PH501" and fault["blocks"] == [0, 1]
    assert {fault["location"]["row"], *(one["location"]["row"] for one in fault["related"])} == planted.lines
    assert "in phase 0 (0 barriers passed before)" in fault["notes"][0]
    code, out = run(planted.text, *words)
    assert code == 1 and "PH501" in out and "confirms PH501" in out


def test_the_command_says_what_the_search_took(run: Callable[..., tuple[int, str]]) -> None:
    many = next(one for one in ALIKE if one.name == "many phases")
    words = ("--set", "N=4", "--grid", "4", "--arg", "X=zeros", "--detect", "races")
    code, out = run(many.text, *words, "--json")
    search = json.loads(out)["search"]
    assert code == 0 and search["races"] == 0 and search["missed"] is None
    assert search["shadow_bytes"] == 32 * 4 and search["elapsed_ms"] == search["elapsed_ms_without"] == 1.0
    code, out = run(many.text, *words)
    assert "no race was seen: 1 ms with the search, 1 ms without (1 times), 128 bytes of shadows" in out


def test_what_could_be_missed_is_said(run: Callable[..., tuple[int, str]]) -> None:
    last = next(one for one in ALIKE if one.name == "the last block reads")
    words = ("--set", "N=4", "--grid", "4", "--arg", "P=zeros", "--arg", "C=zeros", "--arg", "Y=zeros")
    code, out = run(last.text, *words, "--detect", "races")
    assert code == 0 and "not seen is a race of two blocks where the one that came first did an atomic between" in out


def test_other_detections_are_served_or_refused_by_name(run: Callable[..., tuple[int, str]]) -> None:
    words = ("--set", "N=8", "--arg", "X=zeros", "--grid", "1", "--set", "at=9")
    code, out = run(OUTSIDE, *words, "--detect", "bounds")
    assert code == 1 and "index 9 is outside `X`" in out
    code, out = run(OUTSIDE, *words, "--detect", "uninitialised")
    assert code == 2 and "uninitialised tiles cannot be detected on a GPU" in out and "--device cpu" in out
    many = next(one for one in ALIKE if one.name == "many phases")
    words = ("--set", "N=4", "--grid", "4", "--arg", "X=zeros", "--detect", "deadlock", "--plan")
    code, out = run(many.text, *words, "--timeout", "0")
    assert code == 2 and "a deadlock is found by the time limit" in out
    code, out = run(many.text, *words)
    assert code == 0 and "timeout    30 s" in out


def test_an_expected_race_is_judged_by_the_reference(run: Callable[..., tuple[int, str]], device: FakeDriver) -> None:
    planted = next(one for one in PLANTED if one.name == "one cell")
    code, out = run("// run: N=8 X=zeros grid=4\n// expect: fault=race\n" + planted.text)
    assert code == 0 and "expectation met" in out and device.launches == []


# --- Python -----------------------------------------------------------------------------------------------------


def test_arrays_of_the_host_are_looked_at_by_the_reference() -> None:
    planted = next(one for one in PLANTED if one.name == "one cell")
    with pytest.raises(KernelFault, match="different values"):
        planted.kernel()(**planted.made(), grid=4, detect="races")
    with pytest.raises(LaunchError, match="'luck' cannot be detected"):
        planted.kernel()(**planted.made(), grid=4, detect="luck")


def test_a_launch_that_looks_is_not_captured(device: FakeDriver) -> None:
    device.capture = 1
    with pytest.raises(LaunchError, match="cannot be captured into a graph"):
        kernel(read("examples/saxpy.ph"))(
            HostArray(numpy.zeros(64, numpy.float32)), HostArray(numpy.zeros(64, numpy.float32)), 1.0, detect="races"
        )


def test_after_a_race_the_same_kernel_works_again(device: FakeDriver) -> None:
    planted = next(one for one in PLANTED if one.name == "around a loop")
    with pytest.raises(KernelFault):
        launched(planted, planted.made())
    arrays, want = planted.made(), planted.made()
    there = {name: HostArray(array) for name, array in arrays.items()}
    planted.kernel()(**there, grid=1, detect="races", unchecked=True)
    planted.kernel().reference(**want, grid=1)
    numpy.testing.assert_array_equal(arrays["X"], want["X"])


def test_only_what_is_stored_to_has_a_shadow() -> None:
    made = emitted(read("examples/saxpy.ph"), options=Options(instrument=RACES))
    assert [argument.name for argument in made.arguments if argument.kind == "shadow"] == ["Y"]
    plain = emitted(read("examples/saxpy.ph"))
    assert "shadow" not in plain.text and not any(a.kind in ("shadow", "cells", "races") for a in plain.arguments)


def test_a_cell_is_named_by_its_subscripts_where_rows_lie_apart(device: FakeDriver) -> None:
    text = "@launch(32)\nkernel k(X: tensor<f32>[M, N]) {\n  X[1, 3] = ctx.block.x\n}\n"
    x = numpy.zeros((4, 90), numpy.float32)
    with pytest.raises(KernelFault, match=r"different values to X\[1, 3\]"):
        kernel(text)(HostArray(x[:, :70]), grid=3, unchecked=True, detect="races")

"""Traces of launches on a device that is this machine: what is written down, read back and told."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import phobos
from phobos.codegen import nvrtc
from phobos.runtime.cuda import launch, tracing
from phobos.runtime.judge import Judging
from phobos.runtime.kernel import Kernel, Kernels
from phobos.runtime.options import LaunchOptions
from phobos.runtime.tracing.run import traced
from phobos.runtime.tracing.trace import Trace
from tests.codegen import host
from tests.codegen.fake_device import FakeDriver, HostArray
from tests.codegen.test_trace import EARLY
from tests.fusions import LAUNCHED

pytestmark = [
    pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)"),
    pytest.mark.skipif(nvrtc.location() is None, reason="no NVRTC (pip install 'phobos-tools[nvrtc]')"),
]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    monkeypatch.setattr(tracing, "ticks", lambda number: 1_000_000)
    return FakeDriver(monkeypatch)


def trace(kernel: Kernel, arrays: dict[str, Any], numbers: dict[str, Any], room: int = 1 << 16, **how: Any) -> Trace:
    options = phobos.runtime.kernel.LaunchOptions(**{"timeout": 20.0, "tuned": False, **how})
    return traced(kernel, arrays, numbers, options, "cuda:0", Judging(), room)


def test_a_kernel_with_barriers(device: FakeDriver) -> None:
    kernel = Kernels("t.ph", EARLY)["early"]
    x = numpy.ones(3, numpy.float32)
    made = trace(kernel, {"X": x}, {"n": 4}, grid=3)
    assert (x == 1).all(), "on copies"
    assert made.blocks == 3 and made.crossings == 4 and made.complete and made.unit == "ns"
    assert [stretch.name for stretch in made.stretches] == [
        "the start to line 7", "line 7 to line 7", "line 7 to the end",
    ]  # fmt: skip
    assert made.order == (0, 1, 1, 1, 2)
    assert (made.work.sum(axis=1) + made.waits.sum(axis=1) == made.end - made.start).all()
    assert (made.arrived.max(axis=0) < made.left.min(axis=0)).all()
    assert made.cost is not None and made.resolution == 1_000_000 and "1000000 ns" in str(made)


def test_the_arrays_are_as_a_launch_without_marks_leaves_them(device: FakeDriver) -> None:
    kernel = Kernels("t.ph", EARLY)["early"]
    x = numpy.arange(3, dtype=numpy.float32)
    bound = kernel.bound((), {"X": x, "n": 3}, {})
    _, got = tracing.traced(kernel, bound, LaunchOptions(), "cuda:0", 2, 1 << 16)
    there = HostArray(x.copy())
    kernel(there, 3, grid=3)
    launch.synchronize()
    assert got["X"].tobytes() == there.array.tobytes()


def test_what_there_is_no_room_for_is_said(device: FakeDriver) -> None:
    kernel = Kernels("t.ph", EARLY)["early"]
    made = trace(kernel, {"X": numpy.ones(3, numpy.float32)}, {"n": 9}, room=3 * 8 * (4 + 3 * 5), grid=3)
    assert made.crossings == 5 and not made.complete
    assert made.lost == ("4 more marks of a block (barriers crossed, tiles begun): there is room for 5",)
    assert "not kept: 4 more marks" in str(made)
    lost = [event["name"] for event in made.to_chrome()["traceEvents"] if event.get("cat") == "lost"]
    assert lost == ["not kept"] * 3
    assert "line 7 to the end" not in str(made)


def test_more_blocks_than_are_written_down(device: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "MOST_CTAS", 5)
    text = "@launch(32)\nkernel one(X: tensor<f32>[N]) {\n  X[ctx.block.x * 32 :+ 32] = 1.0\n}\n"
    made = trace(Kernels("t.ph", text)["one"], {"X": numpy.zeros(256, numpy.float32)}, {})
    assert made.blocks == 5 and made.lost == ("3 more blocks: there is room for 5",)
    assert [stretch.name for stretch in made.stretches] == ["the whole kernel"]


@pytest.mark.parametrize("schedule", ["persistent-interleaved", "persistent-blocked"])
def test_a_fusion_tells_its_phases_and_the_blocks_of_its_workers(device: FakeDriver, schedule: str) -> None:
    kernels = Kernels("t.ph", LAUNCHED)
    kernel = phobos.fuse(*(kernels[name] for name in ("double", "triple", "add", "both")))
    arrays = {name: numpy.ones(1000, numpy.float32) for name in "XYZWR"}
    made = trace(kernel, arrays, {"a": 1.5}, grid=3, schedule=schedule)
    assert [stretch.name for stretch in made.stretches] == ["`double` and `triple`", "`add`", "`both`"]
    tiles = made.tiles
    assert tiles is not None and tiles.kernels == ("double", "triple", "add", "both")
    for number, blocks in enumerate((16, 32, 8, 16)):
        mine = tiles.kernel == number
        assert sorted(tiles.number[mine]) == list(range(blocks)), "every block once"
        phase = (0, 0, 1, 2)[number]
        begun = made.start if phase == 0 else made.left[:, phase - 1]
        ended = made.end if phase == 2 else made.arrived[:, phase]
        assert (tiles.begun[mine] > begun[tiles.cta[mine]]).all() and (tiles.ended[mine] < ended[tiles.cta[mine]]).all()


def test_blocks_of_a_schedule_without_a_barrier(device: FakeDriver) -> None:
    text = "@launch(32)\nkernel one(X: tensor<f32>[N]) {\n  X[ctx.block.x * 32 :+ 32] = 1.0\n}\n"
    made = trace(Kernels("t.ph", text)["one"], {"X": numpy.zeros(320, numpy.float32)}, {},
                 schedule="persistent-blocked", resident=3)  # fmt: skip
    assert made.blocks == 3 and made.tiles is not None
    assert [sorted(made.tiles.number[made.tiles.cta == n]) for n in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert "10 blocks of `one` on the workers" in str(made)


def test_from_python_on_arrays_of_a_device(device: FakeDriver) -> None:
    x = HostArray(numpy.ones(3, numpy.float32))
    made = Kernels("t.ph", EARLY)["early"].trace(x, 2, grid=3)
    assert made.device.startswith("cuda:0") and made.crossings == 2 and (x.array == 1).all()

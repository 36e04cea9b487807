"""Traces on a card: what was planted is named, what is written down adds up, and no result is touched."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

import phobos
from phobos.runtime.cuda import driver, launch, tracing
from phobos.runtime.kernel import Kernels
from phobos.runtime.options import LaunchOptions
from phobos.runtime.tracing.trace import Trace
from tests.fusions import LAUNCHED

ROOT = Path(__file__).resolve().parents[2]
PLANTED = """
@persistent
kernel planted(X: tensor<f32>[N], slow: i32, more: i32, BAR: tensor<i32>[2]) {
  let at = ctx.block.x * 256
  var n: i32 = 200
  if ctx.block.x == slow { n = more }
  X[at :+ 256] = 1.0
  grid_barrier(BAR)
  for r in range(0, n) {
    X[at :+ 256] = sqrt(X[at :+ 256] + 1.0)
  }
  grid_barrier(BAR)
  X[at :+ 256] = X[at :+ 256] * 2.0
}
"""
WAVES = """
@launch(256)
kernel waves(X: tensor<f32>[N]) {
  let at = ctx.block.x * 256
  for r in range(0, 100) { X[at :+ 256] = sqrt(X[at :+ 256] + 1.0) }
}
"""


def adds_up(made: Trace) -> None:
    assert (made.work >= 0).all() and (made.waits > 0).all()
    assert (made.work.sum(axis=1) + made.waits.sum(axis=1) == made.end - made.start).all()
    if made.crossings:  # within a tick of the clock
        assert (made.left.min(axis=0) >= made.arrived.max(axis=0) - made.resolution).all()
    spent: dict[tuple[int, int], float] = {}
    for event in made.to_chrome()["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in ("work", "wait"):
            key = event["pid"], event["args"][made.noun]
            spent[key] = spent.get(key, 0.0) + event["dur"]
    assert len(spent) == made.blocks
    for (_, cta), took in spent.items():
        assert took == pytest.approx((made.end - made.start)[cta] / 1000, abs=0.01)


@pytest.mark.parametrize("slow", [0, 77])
def test_a_planted_imbalance_is_named(cupy, slow: int) -> None:
    x = cupy.zeros(132 * 256, numpy.float32)
    made = phobos.kernel(PLANTED).trace(x, slow, 800, grid=132)
    adds_up(made)
    phase = made.summary.phases[1]
    assert phase.name == "line 8 to line 12" and phase.slowest == slow and 3.4 < phase.slowest_by < 4.6
    assert phase.slowest_at == made.processor[slow]
    assert f"wait for block {slow} on multiprocessor" in made.summary.verdict[0]
    assert made.summary.waiting > 0.4
    assert not x.any(), "on copies"


def test_an_even_kernel_is_even(cupy) -> None:
    made = phobos.kernel(PLANTED).trace(cupy.zeros(132 * 256, numpy.float32), -1, 0, grid=132)
    adds_up(made)
    assert made.summary.phases[1].imbalance < 1.15


@pytest.mark.parametrize("grid", [132, 264, 1056])
def test_results_are_those_without_marks(cupy, grid: int) -> None:
    kernel = phobos.load(str(ROOT / "examples/staged.ph")).staged
    x = numpy.random.default_rng(0).random((1, 1 << 20), numpy.float32)
    there = cupy.asarray(x)
    bound = kernel.bound((), {"X": x}, {})
    _, got = tracing.traced(kernel, bound, LaunchOptions(grid=grid), "cuda:0", 2, 1 << 24)
    kernel(there, grid=grid)
    launch.synchronize()
    assert got["X"].tobytes() == there.get().tobytes()


def test_staged(cupy) -> None:
    made = phobos.load(str(ROOT / "examples/staged.ph")).staged.trace(cupy.zeros((1, 1 << 20), numpy.float32))
    adds_up(made)
    assert made.crossings == 8 and made.complete and made.summary.residency.waves == 1
    assert made.cost is not None and made.cost.ratio < 2
    assert len(numpy.unique(made.processor)) == driver.multiprocessors(0)


@pytest.mark.parametrize("schedule", ["persistent-interleaved", "persistent-blocked"])
def test_a_fusion(cupy, schedule: str) -> None:
    kernels = Kernels("t.ph", LAUNCHED)
    kernel = phobos.fuse(*(kernels[name] for name in ("double", "triple", "add", "both")))
    arrays = {name: cupy.ones(100_000, numpy.float32) for name in "XYZWR"}
    made = kernel.trace(**arrays, a=1.5, schedule=schedule)
    adds_up(made)
    assert [stretch.name for stretch in made.stretches] == ["`double` and `triple`", "`add`", "`both`"]
    tiles = made.tiles
    assert tiles is not None
    for number, blocks in enumerate((1563, 3125, 782, 1563)):
        mine = tiles.number[tiles.kernel == number]
        assert sorted(mine) == list(range(blocks))
    took = (tiles.ended - tiles.begun).sum()
    assert 0 < took <= made.work.sum()


def test_waves(cupy) -> None:
    made = phobos.kernel(WAVES).trace(cupy.zeros(256 * 3000, numpy.float32))
    adds_up(made)
    held = made.summary.residency
    most = made.plan.ctas_per_sm * driver.multiprocessors(0)
    assert held.at_once <= most and held.waves == -(-3000 // held.at_once) > 1
    assert held.per_multiprocessor is not None and held.per_multiprocessor[1] <= made.plan.ctas_per_sm


def test_a_traced_launch_can_be_replayed(cupy) -> None:
    """The graphs that are timed leave what one launch leaves."""
    kernel = phobos.kernel(PLANTED)
    x = numpy.zeros(132 * 256, numpy.float32)
    bound = kernel.bound((), {"X": x, "slow": 3, "more": 400}, {})
    made, got = tracing.traced(kernel, bound, LaunchOptions(grid=132), "cuda:0", 5, 1 << 20)
    adds_up(made)
    there = cupy.asarray(x)
    kernel(there, 3, 400, grid=132)
    launch.synchronize()
    assert got["X"].tobytes() == there.get().tobytes()


def test_the_clock(cupy) -> None:
    assert 1 <= tracing.ticks(0) <= 2000

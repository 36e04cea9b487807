"""Traces of the reference runtime: what is planted is what they say, and everything adds up."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy
import pytest

import phobos
from phobos.runtime.kernel import Kernels
from phobos.runtime.tracing.trace import Trace
from tests.fusions import LAUNCHED

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
SLOW = """
@launch(32)
@persistent
kernel slow(X: tensor<f32>[N], which: i32, times: i32, BAR: tensor<i32>[2]) {
  let at = ctx.block.x * 32
  X[at :+ 32] = 1.0
  grid_barrier(BAR)
  var n: i32 = 50
  if ctx.block.x == which { n = 50 * times }
  for r in range(0, n) { X[at :+ 32] = X[at :+ 32] + 1.0 }
  grid_barrier(BAR)
  X[at :+ 32] = X[at :+ 32] * 2.0
}
"""
ROUNDS = """
fn meet(BAR: tensor<i32>[2]) {
  grid_barrier(BAR)
}
@launch(32)
@persistent
kernel rounds(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for r in range(0, 6) {
    var n: i32 = 10
    if r % 3 == ctx.block.x { n = 30 }
    for i in range(0, n) { X[ctx.block.x * 32 :+ 32] = X[ctx.block.x * 32 :+ 32] + 1.0 }
    meet(BAR)
  }
}
"""
ORDINARY = """
@launch(32)
kernel ordinary(X: tensor<f32>[N]) {
  let at = ctx.block.x * 32
  var n: i32 = 10
  if ctx.block.x == 0 { n = 70 }
  for r in range(0, n) { X[at :+ 32] = X[at :+ 32] + 1.0 }
}
"""


def slow(which: int, times: int, blocks: int = 8, **how: Any) -> Trace:
    return phobos.kernel(SLOW).trace(numpy.zeros(32 * blocks, numpy.float32), which, times, grid=blocks, **how)


def adds_up(made: Trace) -> None:
    """Work and waiting of each block is its whole time, and in the file nothing overlaps and nothing is missing."""
    assert (made.work >= 0).all() and (made.waits >= 0).all()
    assert (made.work.sum(axis=1) + made.waits.sum(axis=1) == made.end - made.start).all()
    if made.crossings:
        assert (made.left == made.arrived.max(axis=0)).all(), "all leave when the last has come"
    rows: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in made.to_chrome()["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in ("work", "wait"):
            rows.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in rows.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert sum(b - a for spans in rows.values() for a, b in spans) == float((made.end - made.start).sum())


@pytest.mark.parametrize("which", [0, 5])
@pytest.mark.parametrize("times", [2, 4])
def test_the_slow_block_is_named_with_its_phase_and_how_slow_it_is(which: int, times: int) -> None:
    made = slow(which, times)
    adds_up(made)
    first, phase, last = made.summary.phases
    assert (phase.name, phase.line, phase.slowest) == ("line 7 to line 11", 11, which)
    assert phase.slowest_by == pytest.approx(times, rel=0.02)
    assert phase.imbalance == pytest.approx(8 * times / (7 + times), rel=0.02)
    assert phase.longest == made.work[which, 1] == 1 + 3 * 50 * times + 1
    assert first.imbalance == last.imbalance == 1.0
    (said,) = made.summary.verdict
    assert said.startswith(f"line 7 to line 11: blocks wait for block {which}, which works {phase.slowest_by:.2f} ")
    share = made.waits.sum() / (made.end - made.start).sum()
    assert made.summary.waiting == share and f"{share:.1%} of the time of all blocks" in str(made)


@pytest.mark.parametrize("how", [{}, {"scheduler": "round-robin"}, {"scheduler": "adversarial", "seed": 5}])
def test_steps_do_not_depend_on_how_blocks_were_run(how: dict[str, Any]) -> None:
    want, made = slow(3, 4), slow(3, 4, **how)
    for name in ("start", "end", "arrived", "left"):
        assert (getattr(want, name) == getattr(made, name)).all()


def test_an_even_kernel_is_even() -> None:
    made = slow(-1, 4)
    adds_up(made)
    assert [phase.imbalance for phase in made.summary.phases] == [1.0, 1.0, 1.0]
    assert made.summary.waiting == 0 and made.summary.tail == 0
    assert made.summary.verdict == (
        "nothing stands out: no stretch, barrier or tail costs more than 5% of the launch",
    )


def test_rounds_of_a_loop_are_one_row_and_each_waits_for_its_own() -> None:
    """Block 0, 1 and 2 in turn are slow: over all rounds they work alike, and yet each round waits."""
    made = phobos.kernel(ROUNDS).trace(numpy.zeros(128, numpy.float32), grid=4)
    adds_up(made)
    assert made.crossings == 6 and made.order == (0, 1, 1, 1, 1, 1, 2)
    assert [(one.name, one.rounds) for one in made.summary.phases] == [
        ("the start to line 3", 1), ("line 3 to line 3", 5), ("line 3 to the end", 1),
    ]  # fmt: skip
    assert made.stretches[1].note == "called from line 12"
    loop = made.summary.phases[1]
    assert loop.imbalance == pytest.approx(2.0, rel=0.1) and loop.last <= 2
    assert "line 3 to line 3: blocks wait for the last of each round, not for one and the same" in str(made)


def test_a_product_takes_its_multiplications_and_a_scalar_one_step() -> None:
    text = """
@launch(64)
kernel product(A: tensor<f32>[16, 32], B: tensor<f32>[32, 64], C: tensor<f32>[16, 64]) {
  let a = ctx.block.x
  C[0 :+ 16, a * 64 :+ 64] = dot(A[0 :+ 16, 0 :+ 32], B[0 :+ 32, 0 :+ 64])
}
"""
    arrays = [numpy.zeros(shape, numpy.float32) for shape in ((16, 32), (32, 64), (16, 64))]
    made = phobos.kernel(text).trace(*arrays)
    index, product = 1, 16 * 32 * 64
    assert made.end.tolist() == [index + (16 * 32 + 32 * 64 + product + 16 * 64) // 64]


def test_blocks_of_an_ordinary_grid_start_as_there_is_room() -> None:
    """Block 0 takes seven times as long: with two places the other nine go through beside it."""
    made = phobos.kernel(ORDINARY).trace(numpy.zeros(320, numpy.float32), resident=2)
    adds_up(made)
    short, long = 32, 213
    assert (made.end - made.start).tolist() == [long, *[short] * 9]
    assert made.start.tolist() == [0, 0, *(short * n for n in range(1, 7)), long, short * 7]
    assert made.lanes.tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 0, 1]
    held = made.summary.residency
    assert (held.at_once, held.waves, held.last_wave) == (2, 5, 2)
    everything = phobos.kernel(ORDINARY).trace(numpy.zeros(320, numpy.float32))
    assert everything.summary.residency.at_once == 10 and everything.summary.tail == long - short
    assert "the last to end is block 0" in everything.summary.verdict[0]


@pytest.mark.parametrize("schedule", ["persistent-interleaved", "persistent-blocked"])
def test_workers_take_their_blocks_one_after_another(schedule: str) -> None:
    made = phobos.kernel(ORDINARY).trace(numpy.zeros(320, numpy.float32), resident=3, schedule=schedule)
    adds_up(made)
    tiles = made.tiles
    assert made.blocks == 3 and tiles is not None and sorted(tiles.number) == list(range(10))
    mine = tiles.number[tiles.cta == 1].tolist()
    assert mine == ([1, 4, 7] if schedule.endswith("interleaved") else [4, 5, 6, 7])
    for worker in range(3):
        own = tiles.cta == worker
        assert tiles.begun[own].tolist() == [0, *tiles.ended[own][:-1]] and made.end[worker] == tiles.ended[own][-1]
    assert made.summary.phases[0].slowest == 0 and "longest 213 steps (block 0 on worker 0)" in str(made)


def test_a_fusion_waits_between_its_phases() -> None:
    kernels = Kernels("t.ph", LAUNCHED)
    kernel = phobos.fuse(*(kernels[name] for name in ("double", "triple", "add", "both")))
    made = kernel.trace(**{name: numpy.ones(1000, numpy.float32) for name in "XYZWR"}, a=1.5, grid=5)
    adds_up(made)
    assert [stretch.name for stretch in made.stretches] == ["`double` and `triple`", "`add`", "`both`"]
    assert [stretch.note for stretch in made.stretches] == ["before `add`", "before `both`", ""]
    tiles = made.tiles
    assert tiles is not None
    assert [int((tiles.kernel == n).sum()) for n in range(4)] == [16, 32, 8, 16]
    assert sum(tiles.ended - tiles.begun) == made.work.sum()
    assert made.summary.phases[1].imbalance == pytest.approx(2 * 5 / 8), "8 blocks on 5 workers"


def test_arrays_stay_as_they_are() -> None:
    x = numpy.zeros(64, numpy.float32)
    phobos.kernel(SLOW).trace(x, 0, 2, grid=2)
    assert not x.any()


def test_nothing_launched_is_nothing_told() -> None:
    made = phobos.kernel(ORDINARY).trace(numpy.zeros(0, numpy.float32))
    assert made.blocks == 0 and str(made).endswith(": nothing was launched, as its grid has no blocks at these sizes")
    made.to_svg()
    assert [event for event in made.to_chrome()["traceEvents"] if event["ph"] == "X"] == []


@pytest.mark.parametrize("name", ["hand_made_barrier", "stop_flag", "converge_rounds", "split_k_turnstile", "kmeans"])
def test_kernels_of_the_corpus_add_up(name: str) -> None:
    """Loops that wait by themselves, trip counts that data decide, atomics, several barriers: with four blocks."""
    from phobos.cli.arguments import Parser
    from phobos.cli.launches import launches, request
    from phobos.cli.trace import add_arguments
    from phobos.runtime.tracing.run import asked

    parser = Parser("trace", "", "")
    add_arguments(parser)
    words = parser.parse_args([str(CORPUS / f"{name}.ph"), "--device", "cpu", "--grid", "4"])
    kernels, headers = launches(words)
    made = asked(request(words, kernels, headers[0]))
    assert made.blocks == 4 and made.end.max() > 0
    adds_up(made)

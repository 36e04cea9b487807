"""The grid barrier on a card: many of them, odd and even, what it orders, captured, on two streams."""

from __future__ import annotations

import numpy
import pytest

from phobos.errors import LaunchError
from phobos.runtime.cuda import driver, launch
from phobos.runtime.kernel import kernel
from tests.codegen.test_barrier import PASSED_ON as ON_HOST

COUNTED = """
@launch(128)
@persistent
kernel counted(OUT: tensor<f32>[N], BAR: tensor<i32>[2], count: i64) {
  var seen: tile<f32>[1] = 0.0
  for i in range(0, count) {
    grid_barrier(BAR)
    seen += 1.0
  }
  OUT[ctx.block.x :+ 1] = seen
}
"""

# Every round each block writes its cell; after the barrier it reads its neighbour's and checks the round's number.
PASSED_ON = ON_HOST.replace("@launch(32)", "@launch(64)")

STAGED = """
@launch(256)
@persistent
@autotune(TILE in [1024])
kernel staged(X: tensor<f32>[N], BAR: tensor<i32>[2], stages: i64) {
  for stage in range(0, stages) {
    for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
      X[t :+ TILE] = X[t :+ TILE] * 0.5 + 1.0
    }
    grid_barrier(BAR)
  }
}
"""


LAST = """
@persistent
kernel last(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  X[ctx.block.x] = 1.0
  grid_barrier(BAR)
}
"""


def test_a_kernel_may_end_with_its_barrier(cupy) -> None:
    x = cupy.zeros(8, dtype=numpy.float32)
    kernel(LAST)(x, grid=8, timeout=10.0)
    launch.synchronize()
    assert x.get().tolist() == [1.0] * 8


@pytest.mark.parametrize("count", [1, 9_999, 10_000])
def test_back_to_back_and_the_word_is_ready_again(cupy, count: int) -> None:
    counted = kernel(COUNTED)
    out = cupy.zeros(20_000, numpy.float32)
    blocks = counted.plan(out, count=count).grid[0]
    for _ in range(3):
        out.fill(0)
        counted(out, count=count, timeout=20.0)
        launch.synchronize()
        assert bool((out[:blocks] == count).all()) and not bool(out[blocks:].any())


def test_a_million_rounds_of_producer_and_consumer(cupy) -> None:
    made = kernel(PASSED_ON)
    cells, wrong = cupy.zeros((2, 4096), numpy.int32), cupy.full(4096, 7, numpy.int32)
    made(cells, wrong, rounds=1_000_000, timeout=30.0, grid=132)
    launch.synchronize()
    assert not bool(wrong[:132].any())


def test_every_block_that_fits(cupy) -> None:
    made = kernel(PASSED_ON)
    cells, wrong = cupy.zeros((2, 8192), numpy.int32), cupy.full(8192, 7, numpy.int32)
    plan = made.plan(cells, wrong, rounds=20_000)
    assert plan.grid[0] == plan.resident
    made(cells, wrong, rounds=20_000, timeout=30.0)
    launch.synchronize()
    assert not bool(wrong[: plan.grid[0]].any())


@pytest.mark.parametrize("stages", [3, 4])
def test_captured_and_replayed(cupy, stages: int) -> None:
    made = kernel(STAGED)
    x = cupy.full(100_000, 2.0 + 2.0**20, numpy.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        made(x, stages=stages)
        graph = stream.end_capture()
        for _ in range(1000):
            graph.launch()
        stream.synchronize()
    launch.synchronize()
    assert bool((x == 2.0).all())


def test_graphs_captured_on_one_stream_are_replayed_beside_each_other(cupy) -> None:
    """And beside launches on that stream, which is one that waits for stream 0. The kernel is new to the process."""
    made = kernel(STAGED.replace("kernel staged", "kernel captured_first"))
    arrays = [cupy.full(50_000, 4.0, numpy.float32) for _ in range(3)]
    stream = cupy.cuda.Stream()
    graphs = []
    with stream:
        for x in arrays[:2]:
            stream.begin_capture()
            made(x, stages=7, grid=40)
            graphs.append(stream.end_capture())
    others = [cupy.cuda.Stream(non_blocking=True) for _ in graphs]
    cupy.cuda.Device().synchronize()
    for _ in range(200):
        for graph, other in zip(graphs, others, strict=True):
            graph.launch(other)
        made(arrays[2], stages=7, grid=40, stream=stream)
    launch.synchronize()
    assert all(bool((x == 2.0).all()) for x in arrays)


def test_two_streams_at_once(cupy) -> None:
    made = kernel(STAGED)
    arrays = [cupy.full(50_000, 4.0, numpy.float32) for _ in range(2)]
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    cupy.cuda.Device().synchronize()
    for _ in range(200):
        for x, stream in zip(arrays, streams, strict=True):
            made(x, stages=5, grid=40, stream=stream)
    launch.synchronize()
    assert all(bool((x == 2.0).all()) for x in arrays)


def test_the_resident_count_is_the_drivers_own_answer(cupy) -> None:
    made = kernel(STAGED)
    plan = made.plan(cupy.zeros(1 << 24, numpy.float32), stages=1)
    assert plan.resident == plan.ctas_per_sm * driver.multiprocessors(0)
    assert made.persistent_grid() == plan.resident


def test_a_barrier_tensor_in_use_on_another_stream_is_refused(cupy) -> None:
    made = kernel(COUNTED)
    bar, out = cupy.zeros(2, numpy.int32), cupy.zeros(20_000, numpy.float32)
    first, second = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    cupy.cuda.Device().synchronize()
    made(out, bar, count=1, stream=first)
    launch.synchronize()
    made(out, bar, count=300_000, grid=132, timeout=20.0, stream=first)
    with pytest.raises(LaunchError, match="`BAR` is in use") as error:
        made(out, bar, count=1, stream=second)
    assert error.value.kind == "bad-barrier-tensor"
    launch.synchronize()
    made(out, bar, count=1, stream=second)
    launch.synchronize()
    assert bool((out[:8] == 1).all())


def test_replays_between_plain_launches_share_a_brought_barrier(cupy) -> None:
    made = kernel(STAGED)
    x, bar = cupy.full(100_000, 2.0 + 2.0**20, numpy.float32), cupy.zeros(2, numpy.int32)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        made(x, bar, stages=1)
        stream.synchronize()
        stream.begin_capture()
        made(x, bar, stages=3)
        graph = stream.end_capture()
        for _ in range(50):
            graph.launch()
            made(x, bar, stages=1)
        stream.synchronize()
    launch.synchronize()
    assert bool((x == 2.0).all())


def test_a_barrier_that_is_not_zero_is_refused(cupy) -> None:
    bar = cupy.full(1_000_000, 3, numpy.int32)[:2]  # where no other test had one
    with pytest.raises(LaunchError, match="starts with 3"):
        kernel(STAGED)(cupy.zeros(100, numpy.float32), bar, stages=1)

"""What goes wrong on a card ends as an exception with the right place, and the context stays usable."""

from __future__ import annotations

import numpy
import pytest

from phobos.errors import KernelFault, LaunchError
from phobos.runtime.cuda import launch
from phobos.runtime.kernel import kernel
from tests.codegen.test_launch import GATHERED

SKIPPED = """
@launch(64)
@persistent
kernel skipped(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let b = ctx.block.x
  if b != 5 && b != 9 {
    grid_barrier(BAR)
  }
  X[b] = 1.0
}
"""

TRIPS = """
@launch(256)
@persistent
kernel trips(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 512, N, ctx.blocks.x * 512) {
    X[t :+ 512] = X[t :+ 512] + 1.0
    grid_barrier(BAR)
  }
}
"""

WAITS = """
@launch(32)
@persistent
kernel waits(FLAG: tensor<i32>[1], X: tensor<f32>[N]) {
  var seen = atomic_add(FLAG, 0, 0)
  while seen == 0 {
    seen = atomic_add(FLAG, 0, 0)
  }
  X[ctx.block.x] = 1.0
}
"""

PROMISED = """
@launch(128)
@persistent
@aligned(N = 256)
kernel promised(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 256, N, ctx.blocks.x * 256) {
    X[t :+ 256] = X[t :+ 256] + 1.0
  }
  grid_barrier(BAR)
}
"""

OUTSIDE = """
@launch(64)
kernel outside(X: tensor<f32>[N], at: i64) {
  X[at] = 1.0
}
"""


def test_a_skipped_barrier_names_the_blocks_that_are_missing(cupy, still_usable) -> None:
    made = kernel(SKIPPED)
    made(cupy.zeros(64, numpy.float32), unchecked=True, timeout=0.5, grid=16)
    with pytest.raises(KernelFault, match="timeout") as fault:
        launch.synchronize()
    assert fault.value.kind == "timeout" and fault.value.blocks == (5, 9)
    assert "arrived 14, expected 16" in " ".join(fault.value.diagnostic.notes)
    x = cupy.zeros(64, numpy.float32)
    made(x, unchecked=True, timeout=5.0, grid=4)
    launch.synchronize()
    assert x[:4].get().tolist() == [1, 1, 1, 1]


def test_a_brought_barrier_tensor_is_ready_again_after_a_fault(cupy, still_usable) -> None:
    made = kernel(SKIPPED)
    bar = cupy.zeros(2, numpy.int32)
    made(cupy.zeros(64, numpy.float32), bar, unchecked=True, timeout=0.5, grid=16)
    with pytest.raises(KernelFault):
        launch.synchronize()
    x = cupy.zeros(64, numpy.float32)
    made(x, bar, unchecked=True, timeout=5.0, grid=4)
    launch.synchronize()
    assert bool((x[:4] == 1).all())


def test_every_replay_that_is_stopped_is_told_of(cupy, still_usable) -> None:
    made, x, stream = kernel(SKIPPED), cupy.zeros(64, numpy.float32), cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        made(x, unchecked=True, timeout=0.2, grid=16)
        graph = stream.end_capture()
        for _ in range(3):
            graph.launch()
            stream.synchronize()
            with pytest.raises(KernelFault, match="timeout"):
                launch.synchronize()
            launch.synchronize()


def test_a_barrier_in_a_loop_of_unequal_rounds(cupy, still_usable) -> None:
    kernel(TRIPS)(cupy.zeros(512 * 5, numpy.float32), unchecked=True, timeout=0.5, grid=4)
    with pytest.raises(KernelFault, match="timeout") as fault:
        launch.synchronize()
    assert fault.value.blocks == (1, 2, 3)


def test_a_loop_that_waits_for_nobody_is_stopped(cupy, still_usable) -> None:
    kernel(WAITS)(cupy.zeros(1, numpy.int32), cupy.zeros(64, numpy.float32), unchecked=True, timeout=0.5, grid=8)
    with pytest.raises(KernelFault, match="in this loop") as fault:
        launch.synchronize()
    assert fault.value.kind == "timeout"


def test_a_broken_promise_is_refused_before_the_launch(cupy) -> None:
    x = cupy.zeros(1000, numpy.float32)
    with pytest.raises(LaunchError, match="1000 is not a whole number of 256") as error:
        kernel(PROMISED)(x)
    assert error.value.kind == "aligned-broken"
    with pytest.raises(LaunchError, match="1000 is not a whole number of 256"):
        kernel(PROMISED)(x, unchecked=True)
    launch.synchronize()
    assert not bool(x.any())


def test_with_the_hosts_checks_off_the_device_finds_it(cupy, still_usable) -> None:
    x = cupy.zeros(1000, numpy.float32)
    kernel(PROMISED)(x, host_checks=False, timeout=10.0)
    with pytest.raises(KernelFault, match="1000 is not a whole number of 256") as fault:
        launch.synchronize()
    assert fault.value.kind == "aligned-broken"
    assert not bool(x.any())


def test_an_index_outside_is_found_under_debug(cupy, still_usable) -> None:
    made = kernel(OUTSIDE)
    made(cupy.zeros(64, numpy.float32), at=3, grid=1, debug=True)
    launch.synchronize()
    made(cupy.zeros(64, numpy.float32), at=64, grid=1, debug=True)
    with pytest.raises(KernelFault, match=r"64 is outside `X`") as fault:
        launch.synchronize()
    assert fault.value.kind == "out-of-bounds"


def test_an_oversize_grid_is_refused_with_the_limiter(cupy) -> None:
    with pytest.raises(LaunchError, match=r"not resident.*limited by") as error:
        kernel(TRIPS)(cupy.zeros(512, numpy.float32), unchecked=True, grid=100_000)
    assert error.value.kind == "not-resident"


def test_an_index_of_gather_outside_is_found_under_debug(cupy, still_usable) -> None:
    table, y = cupy.arange(20, dtype=numpy.float32), cupy.zeros(1000, numpy.float32)
    at = cupy.arange(1000, dtype=numpy.int32) % 20
    made = kernel(GATHERED)
    made(table, at, y, debug=True)
    launch.synchronize()
    assert bool((y == table[at] + table[at % 8]).all())
    at[777] = 2_000_000_000
    made(table, at, y, debug=True)
    with pytest.raises(KernelFault, match="index 2000000000 is outside `T`, which has 20") as fault:
        launch.synchronize()
    assert fault.value.kind == "out-of-bounds" and fault.value.blocks == (777 // 64,)

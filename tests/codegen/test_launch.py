"""The launch path, walked on a device that is this machine."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy
import pytest

import phobos
from phobos.errors import CheckError, KernelFault, LaunchError
from phobos.runtime.cuda import again
from phobos.runtime.cuda import launch as cuda_launch
from phobos.runtime.cuda.calls import Call
from phobos.runtime.cuda.preparing import Ready
from phobos.runtime.kernel import kernel, load
from tests.codegen import host
from tests.codegen.compare import read
from tests.codegen.fake_device import FakeDriver, HostArray

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

SKIPPED = """
@launch(32)
@persistent
kernel skipped(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let b = ctx.block.x
  if b != 2 {
    grid_barrier(BAR)
  }
  X[b] = 1.0
}
"""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return FakeDriver(monkeypatch)


def floats(*shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(3).random(shape, numpy.float32)


def test_an_ordinary_kernel_is_launched_plainly_on_its_inferred_grid(device: FakeDriver) -> None:
    x, y = floats(5000), floats(5000)
    want = 2.5 * x + y
    kernel(read("examples/saxpy.ph"))(HostArray(x), HostArray(y), 2.5)
    numpy.testing.assert_allclose(y, want, rtol=1e-6)
    assert device.launches == [("phk_saxpy", (5, 1, 1), False)]


@pytest.mark.parametrize("head, wait, cooperative", [
    ("@persistent\n", "while atomic_add(FLAG, 0, 0) < 1 {}", True),
    ("@persistent\n", "", False),
    ("", "while x < 3.0 { x += 1.0 }", False),
])  # fmt: skip
def test_a_persistent_grid_whose_blocks_may_wait_starts_as_a_whole(
    device: FakeDriver, head: str, wait: str, cooperative: bool
) -> None:
    made = kernel(f"""
        {head}kernel k(X: tensor<f32>[N], FLAG: tensor<i32>[M]) {{
          atomic_add(FLAG, 0, 1)
          var x: f32 = 0.0
          {wait}
          for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {{ X[t :+ 64] = X[t :+ 64] + x }}
        }}
        """)
    made(HostArray(floats(256)), HostArray(numpy.zeros(1, numpy.int32)), grid=2)
    assert [one[2] for one in device.launches] == [cooperative]


def test_a_persistent_kernel_with_a_barrier_is_cooperative_and_sized_by_residency(device: FakeDriver) -> None:
    x = floats(1, 1024 * 20)
    want = x.copy()
    for _ in range(8):
        want = want * 0.5 + 1
    made = kernel(read("examples/staged.ph"))
    made(HostArray(x))
    numpy.testing.assert_allclose(x, want, rtol=1e-6)
    assert device.launches == [("phk_staged", (8, 1, 1), True)]
    made(HostArray(x))  # the same barrier word again


def test_the_plan_says_where_the_grid_comes_from(device: FakeDriver) -> None:
    plan = kernel(read("examples/staged.ph")).plan(HostArray(floats(1, 1024 * 20)), reserved_sms=1)
    assert plan.grid == (6, 1, 1) and plan.resident == 6
    assert "2 CTAs per multiprocessor" in plan.grid_source
    assert device.launches == []


def test_a_grid_that_was_asked_for_is_not_said_to_be_the_residency(device: FakeDriver) -> None:
    text = """
@autotune(BLOCKS in [2, 4])
@persistent
kernel stepped(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, BLOCKS * 64) { X[t :+ 64] = X[t :+ 64] + 1.0 }
}
"""
    made, x = kernel(text), HostArray(floats(4096))
    assert made.plan(x).grid_source.startswith("resident blocks: 2 CTAs per multiprocessor")
    for options in ({"grid": 3}, {"constants": {"BLOCKS": 3}}):
        plan = made.plan(x, **options)
        assert plan.grid == (3, 1, 1) and plan.grid_source == "as asked for; BLOCKS is bound to it"


def test_an_oversize_grid_is_refused_with_need_limit_and_limiter(device: FakeDriver) -> None:
    with pytest.raises(LaunchError, match=r"9 blocks is not resident: 8 fit .*limited by") as error:
        kernel(read("examples/staged.ph"))(HostArray(floats(1, 1024 * 20)), grid=9)
    assert error.value.kind == "not-resident" and device.launches == []


def test_a_base_between_16_bytes_takes_narrow_accesses(device: FakeDriver) -> None:
    x, y = floats(5001), floats(5001)
    want = 2.5 * x[1:] + y[1:]
    kernel(read("examples/saxpy.ph"))(HostArray(x[1:]), HostArray(y[1:]), 2.5)
    numpy.testing.assert_allclose(y[1:], want, rtol=1e-6)
    assert not device.functions[-1].wide


def test_rows_may_be_apart(device: FakeDriver) -> None:
    x, y = floats(3, 1000), numpy.zeros((3, 1200), numpy.float32)
    kernel(read("examples/softmax.ph"))(HostArray(x), HostArray(y[:, :1000]))
    e = numpy.exp(x - x.max(1, keepdims=True))
    numpy.testing.assert_allclose(y[:, :1000], e / e.sum(1, keepdims=True), rtol=1e-5)
    assert not y[:, 1000:].any()


def test_an_empty_launch_succeeds(device: FakeDriver) -> None:
    kernel(read("examples/saxpy.ph"))(HostArray(floats(0)), HostArray(floats(0)), 1.0)
    assert device.launches == []


def test_no_array_is_kept_for_a_report_that_may_come(device: FakeDriver) -> None:
    given = HostArray(floats(1, 1024 * 20))
    kept = weakref.ref(given)
    kernel(read("examples/staged.ph"))(given)
    del given
    gc.collect()
    assert kept() is None


def test_arrays_on_two_devices_are_refused(device: FakeDriver) -> None:
    with pytest.raises(LaunchError, match="different devices"):
        kernel(read("examples/saxpy.ph"))(HostArray(floats(8)), HostArray(floats(8), 1), 1.0)


def test_a_proved_error_never_reaches_the_device(device: FakeDriver) -> None:
    with pytest.raises(CheckError):
        kernel(SKIPPED)(HostArray(floats(8)))
    assert device.launches == []


def test_a_skipped_barrier_is_ended_by_the_watchdog_with_the_missing_block(device: FakeDriver) -> None:
    x = floats(8)
    skipped = kernel(SKIPPED)
    skipped(HostArray(x), unchecked=True, timeout=0.001, grid=4)
    with pytest.raises(KernelFault, match="timeout") as fault:
        phobos.synchronize()
    phobos.synchronize(0)  # it is said once
    assert fault.value.kind == "timeout" and fault.value.blocks == (2,)
    assert fault.value.diagnostic is not None and "block 2" in fault.value.diagnostic.message
    x, y = floats(5000), floats(5000)
    want = x + y
    kernel(read("examples/saxpy.ph"))(HostArray(x), HostArray(y), 1.0)
    numpy.testing.assert_allclose(y, want, rtol=1e-6)


def test_no_launch_that_may_hang_is_without_a_limit(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A comment or a configuration that silences the finding lets the launch through, and took its limit away."""
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "cache"))
    silenced = SKIPPED.replace("grid_barrier(BAR)", "grid_barrier(BAR)  // phobos: ignore[PH203] 2 blocks here")
    (tmp_path / "here.ph").write_text(SKIPPED)
    (tmp_path / "phobos.toml").write_text('ignore = ["PH2"]\n')
    configured = str(tmp_path / "here.ph")
    for made in (kernel(silenced), load(configured).skipped, load(configured).skipped):
        plan = made.plan(HostArray(floats(8)), grid=2)
        assert (plan.timeout_s, plan.timeout_source) == (60.0, "because of PH203")
        assert made.plan(HostArray(floats(8)), grid=2, timeout=0).timeout_s is None
    for options in ({}, {"timeout": 0}):
        plan = kernel(SKIPPED).plan(HostArray(floats(8)), grid=2, unchecked=True, **options)
        assert plan.timeout_s == 60.0 and "unchecked" in plan.timeout_source
        assert plan.notes == ("unchecked: launched in spite of PH203 (line 7)",)
    made = kernel(read("examples/staged.ph"))
    plan = made.plan(HostArray(floats(1, 4096)), unchecked=True)
    assert not any("unchecked" in note for note in plan.notes)
    assert made.plan(HostArray(floats(1, 4096))).timeout_s is None


CHOSEN = SKIPPED.replace("if b != 2", "if b < FIRST").replace("@launch", "@autotune(FIRST in [0, 1])\n@launch")


def test_a_launch_is_judged_at_its_own_constants(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The checker was asked of the default constants alone: what hangs at others went onto the card, with no limit."""
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "cache"))
    for _ in range(2):  # the second kernel knows from the first what passed
        made = kernel(CHOSEN)
        x = HostArray(floats(8))
        made(x, grid=4)
        made(x, grid=4, constants={"FIRST": 0})
        assert len(device.launches) == 2
        with pytest.raises(CheckError, match="PH203"):
            made(x, grid=4, constants={"FIRST": 1})
        with pytest.raises(CheckError, match="PH203"):
            made.trace(x, grid=4, constants={"FIRST": 1})
        assert made.plan(x, grid=4, constants={"FIRST": 1}, unchecked=True).timeout_s == 60.0
        assert made.plan(x, grid=4, constants={"FIRST": 1}).timeout_source == "because of PH203"
        assert made.plan(x, grid=4).timeout_s is None
        assert len(device.launches) == 2
        device.launches.clear()


def test_who_waits_for_a_device_names_one_that_is_there(device: FakeDriver) -> None:
    for number, said in ((2, "no CUDA device 2: 2 answer"), (-1, "`device` is -1"), ("cuda:0", "`device` is 'cuda:0'")):
        with pytest.raises(LaunchError, match=said):
            phobos.synchronize(number)  # type: ignore[arg-type]


def test_a_captured_launch_tells_of_every_replay_that_is_stopped(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first fault its report was never looked at again, and its barrier word never made ready."""
    graph: list[Call] = []
    send = Call.send
    monkeypatch.setattr(Call, "send", lambda call, stream: (graph.append(call), send(call, stream)))
    device.capture = 1
    x = numpy.zeros(8, numpy.float32)
    kernel(SKIPPED)(HostArray(x), unchecked=True, timeout=0.001, grid=4, stream=0x1100)
    device.capture = None
    for _ in range(3):
        with pytest.raises(KernelFault, match="timeout"):
            phobos.synchronize()
        phobos.synchronize()
        send(graph[0], 0x1200)  # its replay


def test_less_than_a_nanosecond_is_a_limit_too(device: FakeDriver) -> None:
    """It was rounded to 0, which is none."""
    kernel(SKIPPED)(HostArray(floats(8)), unchecked=True, timeout=1e-10, grid=4)
    with pytest.raises(KernelFault, match="timeout"):
        phobos.synchronize()


def test_after_a_fault_the_same_barrier_word_works_again(device: FakeDriver) -> None:
    skipped = kernel(SKIPPED)
    skipped(HostArray(floats(8)), unchecked=True, timeout=0.001, grid=4)
    with pytest.raises(KernelFault):  # seen by the next launch, too
        skipped(HostArray(floats(8)), unchecked=True, timeout=0.001, grid=2)
    x = numpy.zeros(8, numpy.float32)
    skipped(HostArray(x), unchecked=True, timeout=0.001, grid=2)
    cuda_launch.synchronize()
    assert list(x[:3]) == [1, 1, 0]


def test_a_barrier_tensor_with_a_count_is_refused(device: FakeDriver) -> None:
    bar = numpy.array([3, 0], numpy.int32)
    with pytest.raises(LaunchError, match="starts with 3") as error:
        kernel(read("examples/staged.ph"))(HostArray(floats(1, 4096)), HostArray(bar))
    assert error.value.kind == "bad-barrier-tensor"


def test_memory_that_is_given_out_again_is_looked_at_again(device: FakeDriver) -> None:
    memory, x = numpy.zeros(2, numpy.int32), HostArray(floats(1, 4096))
    made, bar = kernel(read("examples/staged.ph")), HostArray(memory)
    made(x, bar)
    waits = len(device.waits)
    made(x, bar)
    assert len(device.waits) == waits, "an array that was seen is waited for no more"
    memory[:] = 7
    with pytest.raises(LaunchError, match="starts with 7"):
        made(x, HostArray(memory))


def test_a_launch_is_known_again_with_its_own_barrier_alone(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, x = numpy.zeros(2, numpy.int32), HostArray(floats(1, 4096))
    addresses = x.array.ctypes.data, memory.ctypes.data
    made, bar = kernel(read("examples/staged.ph")), HostArray(memory)
    sent: list[Ready] = []
    monkeypatch.setattr(again, "signature", lambda arguments, named, options: ((len(arguments), *named), addresses))
    monkeypatch.setattr(again, "stream_of", lambda stream, library, device: 0)
    run = cuda_launch.run
    monkeypatch.setattr(cuda_launch, "run", lambda ready, *rest, **how: (sent.append(ready), run(ready, *rest, **how)))
    made(x, bar)
    made(x, bar)
    assert [held.array is None for ready in sent for held in ready.bound.tensors.values()] == [False] * 2 + [True] * 2
    memory[:] = 7
    with pytest.raises(LaunchError, match="starts with 7"):
        made(x, HostArray(memory))
    with pytest.raises(LaunchError, match="starts with 7"):
        made(x, BAR=HostArray(memory))


def test_a_barrier_tensor_in_use_on_another_stream_is_refused(device: FakeDriver) -> None:
    bar = numpy.zeros(2, numpy.int32)
    made = kernel(read("examples/staged.ph"))
    made(HostArray(floats(1, 4096)), HostArray(bar), stream=0x1100)
    with pytest.raises(LaunchError, match="in use"):
        made(HostArray(floats(1, 4096)), HostArray(bar), stream=0x1200)


GATHERED = """
@launch(32)
kernel gathered(T: tensor<f32>[K], I: tensor<i32>[N], Y: tensor<f32>[N]) {
  let s = ctx.block.x * 64
  var table: tile<f32>[8] = T[0 :+ 8]
  Y[s :+ 64] = gather(T, I[s :+ 64]) + gather(table, I[s :+ 64] % 8)
}
"""


@pytest.mark.parametrize("index", [-1, 20, 2_000_000_000])
def test_an_index_outside_a_table_is_found_under_debug(device: FakeDriver, index: int) -> None:
    table, at, y = floats(20), numpy.arange(100, dtype=numpy.int32) % 20, floats(100)
    made = kernel(GATHERED)
    made(HostArray(table), HostArray(at), HostArray(y), debug=True)
    cuda_launch.synchronize()
    numpy.testing.assert_array_equal(y, table[at] + table[at % 8])
    at[77] = index
    made(HostArray(table), HostArray(at), HostArray(y), debug=True)
    with pytest.raises(KernelFault, match=rf"index {index} is outside `T`, which has 20") as fault:
        cuda_launch.synchronize()
    assert fault.value.kind == "out-of-bounds" and fault.value.blocks == (1,)
    assert fault.value.diagnostic is not None and fault.value.diagnostic.span.start < GATHERED.index("gather(table")


PROMISED = """
@launch(32)
@aligned(N = 64)
kernel promised(X: tensor<f32>[N]) {
  let s = ctx.block.x * 64
  X[s :+ 64] = X[s :+ 64] + 1.0
}
"""


def test_a_launch_in_spite_of_findings_keeps_the_promises_checked(device: FakeDriver) -> None:
    for unchecked in (False, True):
        with pytest.raises(LaunchError, match="100 is not a whole number of 64") as error:
            kernel(PROMISED)(HostArray(floats(100)), unchecked=unchecked)
        assert error.value.kind == "aligned-broken" and device.launches == []


def test_with_the_hosts_checks_off_the_kernel_finds_the_broken_promise(device: FakeDriver) -> None:
    x = numpy.zeros(100, numpy.float32)
    kernel(PROMISED)(HostArray(x), host_checks=False)
    with pytest.raises(KernelFault, match="100 is not a whole number of 64") as fault:
        cuda_launch.synchronize()
    assert fault.value.kind == "aligned-broken" and not x.any()


PAIRS = """
@launch(32)
kernel pairs(X: tensor<f32>[M, N], Y: tensor<f32>[M, N], HOLES: tensor<i32>[H]) {
  let r = ctx.block.x * 2
  let c = ctx.block.y * 3
  Y[r :+ 2, c :+ 3] = X[r :+ 2, c :+ 3] * 2.0
  if HOLES[ctx.block.x + ctx.block.y * ctx.blocks.x] == 1 { Y[0, 0] = 1.0 }
}
"""


@pytest.mark.parametrize(
    ("schedule", "group", "resident", "launched"),
    [
        (None, None, None, (5, 4, 1)), ("xyz", 2, None, (5, 4, 1)), ("flat", 2, None, (20, 1, 1)),
        ("persistent-blocked", None, None, (8, 1, 1)), ("persistent_interleaved", 3, None, (8, 1, 1)),
        ("persistent-interleaved", None, 3, (3, 1, 1)), ("persistent-blocked", None, 100, (8, 1, 1)),
    ],
)  # fmt: skip
def test_workers_of_a_schedule_are_as_many_as_fit(
    device: FakeDriver, schedule: str | None, group: int | None, resident: int | None, launched: tuple[int, int, int]
) -> None:
    x, y, holes = floats(10, 11), floats(10, 11), numpy.zeros(20, numpy.int32)
    made = kernel(PAIRS)
    how = {"schedule": schedule, "l2_group": group, "resident": resident}
    plan = made.plan(HostArray(x), HostArray(y), HostArray(holes), **how)  # type: ignore[arg-type]
    assert plan.grid == (5, 4, 1) and plan.workers == launched[0] * launched[1] and plan.l2_group == (group or 1)
    assert plan.schedule == (schedule or "flat").replace("_", "-")
    for _ in range(2):
        y[:] = 0
        made(HostArray(x), HostArray(y), HostArray(holes), **how)  # type: ignore[arg-type]
        numpy.testing.assert_array_equal(y, x * 2)
    assert device.launches == [("phk_pairs", launched, False)] * 2


@pytest.mark.parametrize("schedule", ["flat", "xyz", "persistent-blocked", "persistent-interleaved"])
def test_a_fault_on_the_device_names_the_block_of_the_kernels_own_grid(device: FakeDriver, schedule: str) -> None:
    """Only block (4, 3) of 5 x 4 reads outside: number 19."""
    x, y, holes = floats(10, 11), floats(10, 11), numpy.zeros(19, numpy.int32)
    made = kernel(PAIRS)
    made(HostArray(x), HostArray(y), HostArray(holes), schedule=schedule, l2_group=2, debug=True)
    with pytest.raises(KernelFault, match="index 19 is outside `HOLES`") as error:
        cuda_launch.synchronize()
    assert error.value.blocks == (19,)
    made(HostArray(x), HostArray(y), HostArray(numpy.zeros(20, numpy.int32)), schedule=schedule, debug=True)
    cuda_launch.synchronize()


def test_a_kernel_whose_blocks_wait_is_not_scheduled(device: FakeDriver) -> None:
    made = kernel(read("examples/staged.ph"))
    with pytest.raises(LaunchError, match="`staged` cannot run under schedule 'persistent-blocked', as it is"):
        made(HostArray(floats(1, 1024)), schedule="persistent_blocked")
    assert device.launches == []


def test_more_blocks_along_y_than_can_be_launched_are_launched_along_x(device: FakeDriver) -> None:
    text = "kernel k(X: tensor<i32>[N]) { if ctx.block.y < 0 { X[0] = 1 } }"
    plan = kernel(text).plan(HostArray(numpy.zeros(1, numpy.int32)), grid=(2, 65536))
    assert plan.grid == (2, 65536, 1) and plan.workers == 131072

"""What a caller gives wrongly is refused before anything runs: the argument, the line of the kernel, the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import pytest

from phobos.cli import main
from phobos.errors import CheckError, LaunchError
from phobos.lowering import hazards
from phobos.runtime import device as devices
from phobos.runtime.cuda import driver
from phobos.runtime.cuda import host as cuda_host
from phobos.runtime.cuda import launch as cuda_launch
from phobos.runtime.kernel import kernel
from tests.codegen import host
from tests.codegen.compare import read
from tests.codegen.fake_device import FakeDriver, HostArray
from tests.codegen.test_launch import CHOSEN

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

ADDED = """
@launch(64)
kernel added(X: tensor<f32>[M, N],
    Y: tensor<f32>[M, N]) {
  let r = ctx.block.y * 4
  let c = ctx.block.x * 64
  Y[r :+ 4, c :+ 64] = X[r :+ 4, c :+ 64] + 1.0
}
"""
TURNED = """
@launch(1024)
kernel turned(X: tensor<i8>[1, N], Y: tensor<i8>[N, 1]) {{
  var t: tile<i8>[1, {length}] = X[0 :+ 1, 0 :+ {length}]
  Y[0 :+ {length}, 0 :+ 1] = transpose(t)
}}
"""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return FakeDriver(monkeypatch)


def floats(*shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(3).random(shape, numpy.float32)


def ordinary_kernel_runs() -> None:
    x, y = floats(4, 100), floats(4, 100)
    kernel(ADDED)(HostArray(x), HostArray(y))
    numpy.testing.assert_array_equal(y, x + 1)


WRONG: dict[str, tuple[object, dict[str, Any], list[str]]] = {
    "on the host": (floats(4, 100), {}, ["`Y` is on cpu", "`X` is on cuda:0", "<text>:4:", "bring them to one"]),
    "on another device": (
        HostArray(floats(4, 100), 1), {}, ["`Y` is on cuda:1", "`X` is on cuda:0", "<text>:4:", "bring them"],
    ),
    "dtype": (HostArray(floats(4, 100).astype(numpy.float64)), {}, ["`Y`", "f64", "f32", "<text>:4:", "convert"]),
    "rank": (HostArray(floats(400)), {}, ["`Y`", "(400,)", "<text>:4:", "rank 2"]),
    "columns first": (HostArray(floats(100, 4).T), {}, ["`Y`", "not row-major", "<text>:4:", "C-contiguous"]),
    "every other column": (HostArray(floats(4, 200)[:, ::2]), {}, ["`Y`", "not row-major", "<text>:4:"]),
    "extents": (HostArray(floats(4, 99)), {}, ["`N` is 100", "axis 1 of `Y` is 99", "<text>:4:", "must agree"]),
    "nothing": (None, {}, ["`Y`", "None", "<text>:4:"]),
    "a grid of 0": (HostArray(floats(4, 100)), {"grid": 0}, ["`added`", "grid of 0", "<text>:3:", "at least 1"]),
    "a negative grid": (HostArray(floats(4, 100)), {"grid": (2, -1)}, ["(2, -1)", "<text>:3:", "at least 1"]),
    "too many axes": (HostArray(floats(4, 100)), {"grid": (1, 1, 1, 1)}, ["1 to 3", "<text>:3:"]),
    "too many blocks": (HostArray(floats(4, 100)), {"grid": 2**31}, ["2147483648 blocks", "2147483647", "<text>:3:"]),
    "too many blocks along y": (
        HostArray(floats(4, 100)), {"grid": (1, 65536), "schedule": "xyz"}, ["along y", "65535", "<text>:3:", "flat"],
    ),
    "an unknown schedule": (HostArray(floats(4, 100)), {"schedule": "spiral"}, ["'spiral'", "persistent-blocked"]),
    "another constant": (HostArray(floats(4, 100)), {"constants": {"TILE": 3}}, ["no constant `TILE`"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_refused_with_its_name_line_and_way_out(device: FakeDriver, case: str) -> None:
    given, options, words = WRONG[case]
    with pytest.raises(LaunchError) as error:
        kernel(ADDED)(HostArray(floats(4, 100)), given, **options)
    for word in words:
        assert word in str(error.value)
    assert device.launches == []
    ordinary_kernel_runs()


def test_a_read_only_array_may_be_read_and_not_stored(device: FakeDriver) -> None:
    frozen = floats(4, 100)
    frozen.flags.writeable = False
    y = floats(4, 100)
    kernel(ADDED)(HostArray(frozen), HostArray(y))
    numpy.testing.assert_array_equal(y, frozen + 1)
    with pytest.raises(LaunchError, match="`Y` is read-only"):
        kernel(ADDED)(HostArray(y), HostArray(frozen))


@pytest.mark.parametrize("shape", [(0, 100), (4, 0), (0, 0)])
def test_a_launch_of_nothing_succeeds_and_launches_nothing(device: FakeDriver, shape: tuple[int, int]) -> None:
    kernel(ADDED)(HostArray(floats(*shape)), HostArray(floats(*shape)))
    assert device.launches == []
    ordinary_kernel_runs()


def test_a_barrier_among_blocks_without_work(device: FakeDriver) -> None:
    kernel(read("examples/staged.ph"))(HostArray(floats(1, 0)))
    kernel(read("examples/staged.ph"))(HostArray(floats(1, 0)), grid=3)
    cuda_launch.synchronize()


def test_bf16_arrays(device: FakeDriver) -> None:
    x, y = (floats(4, 100).astype(ml_dtypes.bfloat16) for _ in range(2))

    class Half(HostArray):
        """As PyTorch shows its bfloat16: two bytes without a type."""

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            shown = self.array.view(numpy.uint16).__array_interface__
            return {**shown, "typestr": "<V2", "version": 3, "strides": self.array.strides}

    halves = [Half(array) for array in (x, y)]
    for half in halves:
        half.dtype = "bfloat16"
    kernel(ADDED.replace("f32", "bf16"))(*halves)
    numpy.testing.assert_array_equal(y, x + ml_dtypes.bfloat16(1))


def test_tiles_around_48_kib(device: FakeDriver) -> None:
    """One byte more than 48 KiB is refused by the checker and says so; under `@dynshared` it runs."""
    # With many threads each has few of the elements, which are written out: for 768 the compiler takes 14 seconds.
    for length in (48 * 1024 - 1, 48 * 1024, 48 * 1024 + 1):
        text = TURNED.format(length=length)
        x = numpy.arange(length, dtype=numpy.int32).astype(numpy.int8).reshape(1, -1)
        y = numpy.zeros((length, 1), numpy.int8)
        if length > 48 * 1024:
            with pytest.raises(CheckError, match=r"PH402|49153"):
                kernel(text)(HostArray(x), HostArray(y), grid=1)
            text = "@dynshared\n" + text
        kernel(text)(HostArray(x), HostArray(y), grid=1)
        numpy.testing.assert_array_equal(y, x.T)


def test_two_streams_have_barrier_words_of_their_own(device: FakeDriver) -> None:
    made = kernel(read("examples/staged.ph"))
    for stream in (0x1100, 0x1200, 0x1100):
        made(HostArray(floats(1, 4096)), stream=stream)
    words = {channel.barrier(0) for channel in cuda_launch._channels.values()}
    assert len(words) == 2


def test_captured_graphs_have_barrier_words_of_their_own(device: FakeDriver) -> None:
    """They are replayed beside each other and beside launches on the stream that they were captured on."""
    made = kernel(read("examples/staged.ph"))
    for capture in (None, 7, 7, 8, None):
        device.capture = capture
        made(HostArray(floats(1, 4096)), stream=0x1100)
    words = {channel.barrier(0) for channel in cuda_launch._channels.values()}
    assert len(words) == 3


def test_while_a_graph_is_captured_nothing_waits_and_the_word_is_left_ready(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from phobos.runtime.cuda import driver

    made = kernel(read("examples/staged.ph"))
    made(HostArray(floats(1, 4096)), stream=0x1100)
    device.capture = 1

    def waited(*_: object) -> None:
        raise AssertionError("a capture must not wait")

    monkeypatch.setattr(driver, "synchronize", waited)
    monkeypatch.setattr(driver, "synchronize_stream", waited)
    x = floats(1, 4096)
    for _ in range(20):
        made(HostArray(x), stream=0x1100)
    bar = numpy.zeros(2, numpy.int32)
    made(HostArray(x), HostArray(bar), stream=0x1100)
    assert bar[0] in (0, -(2**31)) and bar[1] == 0


def test_loops_nested_too_deep_are_refused_by_name() -> None:
    """Where threads wait is found by walking each loop twice, and what is in it: thirty of them took for ever."""
    loops = "".join(f"for i{n} in range(0, 2) {{\n" for n in range(30))
    deep = kernel(f"kernel k(X: tensor<f32>[N]) {{\n{loops}X[0] = 1.0\n{'}' * 30}\n}}\n")
    with pytest.raises(LaunchError, match="its loops are nested more than 10 deep"):
        deep.compile(target="sm_80")


def test_loops_nested_as_deep_as_may_be_are_not_told_apart_in_every_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a statement touches came round any of the loops before: seven of them, and a kernel took minutes."""
    most: list[int] = []
    whole = hazards._union

    def counted(first: list[hazards.Touch], second: list[hazards.Touch]) -> list[hazards.Touch]:
        made = whole(first, second)
        most.append(len(made))
        return made

    monkeypatch.setattr(hazards, "_union", counted)
    loops = "".join(f"for i{n} in range(0, 2) {{\n" for n in range(5))
    kernel(f"kernel k(X: tensor<f32>[N]) {{\n{loops}X[i0] = 1.0\n{'}' * 5}\n}}\n").compile(target="sm_80")
    assert 1 < max(most) <= 5 + 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("X[ctx.block.x * 64 :+ 4294967296] = 1.0", "a statement over 4294967296 cells: at most 1073741824"),
        ("var t: tile<f32>[1048576] = 0.5\nX[0 :+ 1048576] = t", "1048576 elements: 256 threads hold at most 262144"),
        ("let t = X[0 :+ 1048576] * 2.0\nX[0 :+ 1048576] = t", "1048576 elements: 256 threads hold at most 262144"),
    ],
)
def test_more_cells_than_a_block_can_go_over_are_refused_by_name(body: str, said: str) -> None:
    """Their loops were unrolled for minutes, and counted in 32 bits."""
    with pytest.raises(LaunchError, match=said):
        kernel(f"kernel k(X: tensor<f32>[N]) {{\n{body}\n}}\n").compile(target="sm_80")


def test_loops_longer_than_registers_are_not_unrolled_wholly() -> None:
    text = "kernel k(X: tensor<f32>[N]) {\nX[ctx.block.x * 64 :+ %d] = 1.0\n}\n"
    assert "#pragma unroll 8\n" not in kernel(text % 65536).compile(target="sm_80").cuda
    assert "#pragma unroll 8\n" in kernel(text % 1048576).compile(target="sm_80").cuda


def test_a_run_is_judged_at_its_own_constants(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(devices, "driver", lambda: (1, "this machine answers"))
    (tmp_path / "chosen.ph").write_text(CHOSEN)
    run = ["run", str(tmp_path / "chosen.ph"), "--set", "N=8", "--arg", "X=zeros", "--grid", "4"]
    assert main([*run, "--device", "cuda"]) == 0 and len(device.launches) == 1
    capsys.readouterr()
    assert main([*run, "--device", "cuda", "--set", "FIRST=1"]) == 1 and len(device.launches) == 1
    assert "nothing has run: 1 error of the checker" in capsys.readouterr().out
    assert main([*run, "--device", "cpu", "--set", "FIRST=1"]) == 1
    assert "confirms PH203" in capsys.readouterr().out


def test_host_arrays_that_do_not_fit_are_told_by_name(device: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    full = driver.DriverError("cuMemAlloc_v2: out of memory (2)", driver.OUT_OF_MEMORY)
    given: list[int] = []

    def allocate(size: int) -> int:
        if given:
            raise full
        given.append(size)
        return device.allocate(size)

    monkeypatch.setattr(driver, "allocate", allocate)
    bound = kernel(ADDED).bound((floats(64, 64), floats(64, 64)), {}, {})
    with pytest.raises(LaunchError, match="<text>:4: argument `Y` takes 16 KiB, and cuda:0 has 1 GiB free"):
        cuda_host.moved(bound, 0)


@pytest.mark.parametrize("words", [["--set", "N=0"], ["--set", "N=0", "--schedule", "persistent-blocked"]])
def test_nothing_is_compared_with_nothing(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    words: list[str],
) -> None:  # fmt: skip
    """The reference was asked for a grid of 0 blocks, which nobody may ask for."""
    monkeypatch.setattr(devices, "driver", lambda: (1, "this machine answers"))
    text = "kernel added(X: tensor<f32>[N]) {\n  let s = ctx.block.x * 64\n  X[s :+ 64] = X[s :+ 64] + 1.0\n}\n"
    (tmp_path / "added.ph").write_text(text)
    run = ["run", str(tmp_path / "added.ph"), "--device", "cuda", "--verify", "--arg", "X=zeros"]
    assert main([*run, *words]) == 0
    assert "verified X" in capsys.readouterr().out and device.launches == []

"""Arrays, streams, shared memory and sizes on a card."""

from __future__ import annotations

import numpy
import pytest

from phobos.codegen import cards
from phobos.errors import CheckError, LaunchError
from phobos.runtime.cuda import driver, launch, loading
from phobos.runtime.kernel import Kernels, kernel
from tests.cuda.conftest import ORDINARY
from tests.cuda.test_conformance import FILES

TRANSPOSED = """
@launch(128)
@dynshared
kernel transposed(X: tensor<{dtype}>[R, C], Y: tensor<{dtype}>[C, R]) {{
  var t: tile<{dtype}>[{rows}, {columns}] = X[0 :+ {rows}, 0 :+ {columns}]
  Y[0 :+ {columns}, 0 :+ {rows}] = transpose(t)
}}
"""


def test_pytorch_arrays_on_their_own_stream(torch) -> None:
    x = torch.arange(10_000, dtype=torch.float32, device="cuda")
    y = torch.zeros_like(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        big = torch.rand(4096, 4096, device="cuda") @ torch.rand(4096, 4096, device="cuda")
        x += big.sum() * 0
        kernel(ORDINARY)(x, y)
    stream.synchronize()
    launch.synchronize()
    assert bool((y == x * 2 + 1).all())


def test_pytorch_bf16(torch) -> None:
    text = ORDINARY.replace("f32", "bf16")
    x = torch.rand(10_000, device="cuda").to(torch.bfloat16)
    y = torch.zeros_like(x)
    kernel(text)(x, y)
    torch.cuda.synchronize()
    assert torch.allclose(y.float(), x.float() * 2 + 1, rtol=1e-2)


def test_rows_apart_and_bases_between(cupy) -> None:
    text = """
    kernel scaled(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
      let r = ctx.block.y * 16
      let c = ctx.block.x * 64
      Y[r :+ 16, c :+ 64] = X[r :+ 16, c :+ 64] * 3.0
    }
    """
    whole = cupy.random.rand(100, 333, dtype=numpy.float32)
    x = whole[:, 1:300]
    y = cupy.zeros((100, 299), numpy.float32)
    kernel(text)(x, y)
    launch.synchronize()
    assert bool(cupy.allclose(y, x * 3))


def test_nothing_to_do_succeeds(cupy) -> None:
    kernel(ORDINARY)(cupy.zeros(0, numpy.float32), cupy.zeros(0, numpy.float32))
    launch.synchronize()


def test_host_arrays_beside_device_arrays_are_refused(cupy) -> None:
    with pytest.raises(LaunchError, match="different devices"):
        kernel(ORDINARY)(cupy.zeros(8, numpy.float32), numpy.zeros(8, numpy.float32))


def test_no_grid_and_too_many_blocks_are_refused(cupy) -> None:
    x = cupy.zeros(1024, numpy.float32)
    for grid in (0, -1, (1, 2, 3, 4), 2**31):
        with pytest.raises(LaunchError):
            kernel(ORDINARY)(x, x.copy(), grid=grid)


@pytest.mark.parametrize("size", [48 * 1024 - 16, 48 * 1024, 48 * 1024 + 16, 200 * 1024])
def test_shared_memory_around_48_kib(cupy, size: int) -> None:
    rows, columns = 1, size // 4
    text = TRANSPOSED.format(dtype="f32", rows=rows, columns=columns)
    x = cupy.random.rand(rows, columns, dtype=numpy.float32)
    y = cupy.zeros((columns, rows), numpy.float32)
    made = kernel(text)
    plan = made.plan(x, y, grid=1)
    assert plan.shared_bytes is not None and plan.shared_bytes >= size
    made(x, y, grid=1)
    launch.synchronize()
    assert bool((y == x.T).all())


def test_the_table_of_cards_agrees_with_the_driver(cupy) -> None:
    """Registers, shared bytes and resident CTAs read from a cubin against the driver, over all kernels."""
    from phobos.lowering.options import Options

    arch = cards.arch_of(*driver.capability(0))
    if arch not in cards.LIMITS:
        pytest.skip(f"no limits for {arch}")
    checked = 0
    with driver.on(0) as context:
        for path in FILES:
            for one in Kernels(str(path), path.read_text()):
                module, unit = one.analysed()
                loaded = loading.load(module, unit, Options(arch=arch), 0, context)
                made = loaded.compiled
                assert made.registers == loaded.registers, path
                assert made.shared_bytes == loaded.shared_bytes, path
                assert made.local_bytes == driver.function_attribute(loaded.function, driver.FUNCTION_LOCAL), path
                assert made.occupancy(cards.LIMITS[arch]).ctas_per_sm == loaded.ctas_per_sm, path
                checked += 1
    assert checked > 40
    assert driver.multiprocessors(0) == driver.attribute(0, driver.ATTRIBUTE_MULTIPROCESSORS)


def test_the_same_launch_again(cupy, torch) -> None:
    """Known signatures skip all decisions; another array, number or stream of the same kernel stays apart."""
    text = """
    kernel axpy(X: tensor<f32>[N], Y: tensor<f32>[N], a: f32) {
      let s = ctx.block.x * 1024
      Y[s :+ 1024] = Y[s :+ 1024] + X[s :+ 1024] * a
    }
    """
    made = kernel(text)
    x, y, z = (cupy.full(5000, v, numpy.float32) for v in (1.0, 0.0, 0.0))
    for _ in range(10):
        made(x, y, 1.0)
        made(x, y, 2.0)
        made(x, z, 1.0)
    launch.synchronize()
    assert bool((y == 30).all()) and bool((z == 10).all())
    stream = torch.cuda.Stream()
    t = torch.zeros(5000, device="cuda")
    ones = torch.ones(5000, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(10):
            made(ones, t, 1.0)
    stream.synchronize()
    assert bool((t == 10).all())


TURNED = """
@launch(64)
kernel turned(X: tensor<i8>[1, N], Y: tensor<i8>[N, 1]) {{
  var t: tile<i8>[1, {length}] = X[0 :+ 1, 0 :+ {length}]
  Y[0 :+ {length}, 0 :+ 1] = transpose(t)
}}
"""


@pytest.mark.parametrize("length", [48 * 1024 - 1, 48 * 1024, 48 * 1024 + 1])
def test_one_byte_around_48_kib(cupy, still_usable, length: int) -> None:
    text = TURNED.format(length=length)
    x = cupy.arange(length, dtype=numpy.int32).astype(numpy.int8).reshape(1, -1)
    y = cupy.zeros((length, 1), numpy.int8)
    if length > 48 * 1024:
        with pytest.raises(CheckError):
            kernel(text)(x, y, grid=1)
        text = "@dynshared\n" + text
    kernel(text)(x, y, grid=1)
    launch.synchronize()
    assert bool((y == x.T).all())


def test_what_the_compiler_adds_to_tiles_of_48_kib(cupy) -> None:
    """The tile takes all that is static; the sums across warps lie behind it."""
    text = """
    kernel shares(X: tensor<f32>[1, N], Y: tensor<f32>[1, N]) {
      var t: tile<f32>[1, 12288] = X[0 :+ 1, 0 :+ 12288]
      t[0, 5] = 1.0
      Y[0 :+ 1, 0 :+ 12288] = t / rowsum(t)
    }
    """
    x, y = cupy.ones((1, 12288), numpy.float32), cupy.zeros((1, 12288), numpy.float32)
    made = kernel(text)
    plan = made.plan(x, y, grid=1)
    assert plan.shared_bytes is not None and plan.shared_bytes > 48 * 1024
    made(x, y, grid=1)
    launch.synchronize()
    assert bool(cupy.allclose(y, 1 / 12288))


BAD = {
    "rank": (lambda cp: cp.zeros((8, 8), numpy.float32), {}, "rank 1"),
    "dtype": (lambda cp: cp.zeros(8, numpy.float64), {}, "f64"),
    "strides": (lambda cp: cp.zeros(16, numpy.float32)[::2], {}, "not row-major"),
    "extents": (lambda cp: cp.zeros(9, numpy.float32), {}, "`N`"),
    "host": (lambda cp: numpy.zeros(8, numpy.float32), {}, "`Y` is on cpu"),
    "nothing": (lambda cp: None, {}, "`Y`"),
    "grid along y": (lambda cp: cp.zeros(8, numpy.float32), {"grid": (1, 65536), "schedule": "xyz"}, "along y"),
    "grid of 0": (lambda cp: cp.zeros(8, numpy.float32), {"grid": 0}, "at least 1"),
    "negative grid": (lambda cp: cp.zeros(8, numpy.float32), {"grid": (1, -2)}, "at least 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_and_the_context_stays_usable(cupy, still_usable, case: str) -> None:
    made, options, words = BAD[case]
    with pytest.raises(LaunchError) as error:
        kernel(ORDINARY)(cupy.zeros(8, numpy.float32), made(cupy), **options)
    assert words in str(error.value) and "<text>:" in str(error.value)


def test_pytorch_and_cupy_arrays_in_one_launch(cupy, torch) -> None:
    x = torch.arange(5000, dtype=torch.float32, device="cuda")
    y = cupy.zeros(5000, numpy.float32)
    torch.cuda.synchronize()
    kernel(ORDINARY)(x, y)
    launch.synchronize()
    assert bool((y == cupy.asarray(x) * 2 + 1).all())


def test_views_of_pytorch_arrays_are_written_in_place(torch) -> None:
    whole = torch.zeros(3, 5000, device="cuda")
    x = torch.arange(5000, dtype=torch.float32, device="cuda")
    torch.cuda.synchronize()
    kernel(ORDINARY)(x, whole[1])
    torch.cuda.synchronize()
    launch.synchronize()
    assert bool((whole[1] == x * 2 + 1).all()) and not bool(whole[0].any()) and not bool(whole[2].any())

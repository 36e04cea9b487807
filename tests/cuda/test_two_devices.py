"""Two cards in one process: each kernel on the card of its arrays, both at once from two threads."""

from __future__ import annotations

import threading

import numpy
import pytest

from phobos.errors import LaunchError
from phobos.runtime.cuda import driver, host, launch
from phobos.runtime.kernel import kernel
from phobos.runtime.options import LaunchOptions
from tests.cuda.conftest import ORDINARY
from tests.cuda.test_barrier import STAGED

pytestmark = pytest.mark.two_gpus


@pytest.mark.parametrize("current", [0, 1])
def test_a_kernel_runs_on_the_card_of_its_arrays(cupy, current: int) -> None:
    made, staged = kernel(ORDINARY), kernel(STAGED)
    for device in (1, 0, 1):
        with cupy.cuda.Device(device):
            x = cupy.arange(50_000, dtype=numpy.float32)
            y, z = cupy.zeros_like(x), cupy.full(50_000, 4.0, numpy.float32)
        with cupy.cuda.Device(current):
            made(x, y)
            staged(z, stages=40)
            assert cupy.cuda.Device().id == current
        launch.synchronize(device)
        with cupy.cuda.Device(device):
            assert bool((y == x * 2 + 1).all()) and bool((z == 2.0).all())
        plan = staged.plan(z, stages=1)
        assert plan.device.startswith(f"cuda:{device} ") and plan.resident == staged.persistent_grid(device=device)


def test_pytorch_on_the_second_card(torch) -> None:
    x = torch.arange(10_000, dtype=torch.float32, device="cuda:1")
    y = torch.zeros_like(x)
    stream = torch.cuda.Stream(device="cuda:1")
    torch.cuda.synchronize(1)
    with torch.cuda.stream(stream):
        for _ in range(3):
            kernel(ORDINARY)(x, y)
    stream.synchronize()
    launch.synchronize()
    assert bool((y == x * 2 + 1).all())


def test_both_at_once_from_two_threads(cupy) -> None:
    staged, wrong = kernel(STAGED), []

    def work(device: int) -> None:
        try:
            with cupy.cuda.Device(device):
                x = cupy.full(100_000, 4.0, numpy.float32)
                cupy.cuda.Device().synchronize()
                for _ in range(200):
                    staged(x, stages=20)
                launch.synchronize(device)
                assert bool((x == 2.0).all())
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(device,)) for device in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrays_and_streams_of_two_cards_are_refused(cupy) -> None:
    with cupy.cuda.Device(0):
        x, stream = cupy.zeros(8, numpy.float32), cupy.cuda.Stream(non_blocking=True)
    with cupy.cuda.Device(1):
        y, z = cupy.zeros(8, numpy.float32), cupy.zeros(8, numpy.float32)
    with pytest.raises(LaunchError, match="`Y` is on cuda:1, `X` is on cuda:0"):
        kernel(ORDINARY)(x, y)
    with pytest.raises(LaunchError, match="`stream` is one of cuda:0, the arrays are on cuda:1"):
        kernel(ORDINARY)(z, y, stream=stream)
    assert driver.device_of_pointer(y.data.ptr) == 1


def test_host_arrays_on_the_second_card() -> None:
    x, y = numpy.arange(1000, dtype=numpy.float32), numpy.zeros(1000, numpy.float32)
    made = kernel(ORDINARY)
    result = host.run(made, made.bound((x, y), {}, {}), LaunchOptions(), "cuda:1", repeat=3)
    assert result.plan.device.startswith("cuda:1 ")
    numpy.testing.assert_array_equal(result.arrays["Y"], x * 2 + 1)

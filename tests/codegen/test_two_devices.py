"""A kernel runs on the device of its arrays: its occupancy, module, words and streams are of that device alone.

The cards of these tests are not alike, and whatever is done on the wrong one fails (`two_cards`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import numpy
import pytest

from phobos.errors import KernelFault, LaunchError
from phobos.runtime.arrays import describe
from phobos.runtime.cuda import driver, launch
from phobos.runtime.cuda import host as cuda_host
from phobos.runtime.kernel import kernel
from phobos.runtime.options import LaunchOptions
from tests.codegen import host
from tests.codegen.compare import read
from tests.codegen.two_cards import MULTIPROCESSORS, PER_MULTIPROCESSOR, CardArray, LikeCupy, TwoCards

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

DOUBLED = """
@launch(64)
kernel doubled(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let s = ctx.block.x * 256
  Y[s :+ 256] = X[s :+ 256] * 2.0
}
"""
RESIDENT = tuple(a * b for a, b in zip(MULTIPROCESSORS, PER_MULTIPROCESSOR))


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoCards]:
    made = TwoCards(monkeypatch)
    yield made
    made.close()


def floats(count: int, seed: int = 1) -> numpy.ndarray:
    return numpy.random.default_rng(seed).random(count, numpy.float32)


@pytest.mark.parametrize("device", [0, 1])
def test_everything_is_asked_of_the_device_of_the_arrays(cards: TwoCards, device: int) -> None:
    x, bar = floats(65536).reshape(1, -1), numpy.zeros(2, numpy.int32)
    made = kernel(read("examples/staged.ph"))
    plan = made.plan(cards.array(device, x))
    assert plan.resident == RESIDENT[device] and plan.device == f"cuda:{device} (card {device})"
    made(cards.array(device, x))
    made(cards.array(device, floats(65536).reshape(1, -1)), cards.array(device, bar))
    launch.synchronize()
    assert {where for where, *_ in cards.launches} == {device}
    assert cards.of(device) and not cards.of(1 - device)


def test_the_current_device_is_somebody_elses_business(cards: TwoCards) -> None:
    """A thread whose current device is the other one gets it back, and its kernel runs where its arrays lie."""
    cards.make_current(cards.primaries[0])
    x, y = floats(1000), numpy.zeros(1000, numpy.float32)
    made = kernel(DOUBLED)
    for _ in range(3):  # the launch, and the same again
        made(cards.array(1, x), cards.array(1, y))
    assert [where for where, *_ in cards.launches] == [1, 1, 1]
    assert cards._stack() == [cards.primaries[0]]
    numpy.testing.assert_array_equal(y, x * 2)


def test_both_at_once_from_two_threads(cards: TwoCards) -> None:
    made, staged = kernel(DOUBLED), kernel(read("examples/staged.ph"))
    errors: list[BaseException] = []

    def work(device: int) -> None:
        try:
            for turn in range(8):
                x, y = floats(1000, turn), numpy.zeros(1000, numpy.float32)
                made(cards.array(device, x), cards.array(device, y))
                staged(cards.array(device, floats(4096, turn).reshape(1, -1)))
                launch.synchronize(device)
                numpy.testing.assert_array_equal(y, x * 2)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(device,)) for device in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(where for where, *_ in cards.launches) == [0] * 16 + [1] * 16


def test_arrays_on_two_devices_are_refused_by_name(cards: TwoCards) -> None:
    with pytest.raises(LaunchError, match=r"`Y` is on cuda:1, `X` is on cuda:0.*bring them to one device"):
        kernel(DOUBLED)(cards.array(0, floats(8)), cards.array(1, floats(8)))
    assert not cards.launches


def test_memory_that_no_card_knows_is_refused_by_name(cards: TwoCards) -> None:
    """An array may say that it lies on a card while its address is the host's: the launch was the context's end."""
    known, unknown = cards.array(0, numpy.ones(100, numpy.float32)), CardArray(numpy.ones(100, numpy.float32))
    with pytest.raises(LaunchError, match="argument `X` says that it lies on a GPU, but CUDA does not know its memory"):
        kernel(DOUBLED)(unknown, known)
    driver.attribute.cache_clear()
    cards.pageable = True
    assert describe("X", unknown).device == "cuda:0"


def test_a_forked_process_is_told_why_nothing_works(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(cuDeviceGetCount=lambda *_: 3, cuGetErrorString=lambda *_: 0)
    monkeypatch.setattr(driver, "library", lambda: library)
    for by, said in (([os.getpid()], r"\(3\)$"), ([1], "forked after CUDA had started")):
        monkeypatch.setattr(driver, "_opened_by", by)
        with pytest.raises(driver.DriverError, match=said):
            driver.call("cuDeviceGetCount")


def test_a_lost_context_is_told_with_the_way_to_find_out(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(cuCtxSynchronize=lambda *_: 700, cuGetErrorString=lambda *_: 0)
    monkeypatch.setattr(driver, "library", lambda: library)
    with pytest.raises(driver.DriverError, match=r"\(700\); no CUDA call .* debug=True \(--debug\) says") as error:
        driver.synchronize()
    assert error.value.status == 700


def test_a_stream_of_the_other_device_is_refused(cards: TwoCards) -> None:
    made, x, y = kernel(DOUBLED), cards.array(1, floats(8)), cards.array(1, floats(8))
    with pytest.raises(LaunchError, match=r"`stream` is one of cuda:0, the arrays are on cuda:1"):
        made(x, y, stream=cards.stream_on(0))
    made(x, y, stream=cards.stream_on(1))
    with pytest.raises(LaunchError, match="cuda:0"):  # a launch that is known asks too
        made(x, y, stream=cards.stream_on(0))
    assert len(cards.launches) == 1


def test_another_context_of_the_device_has_functions_of_its_own(cards: TwoCards) -> None:
    """A context that is not the primary one (PyCUDA's, a green one) stays current, and nothing is taken across."""
    made, x, y = kernel(DOUBLED), cards.array(1, floats(8)), cards.array(1, floats(8))
    staged, z, bar = kernel(read("examples/staged.ph")), floats(4096).reshape(1, -1), numpy.zeros(2, numpy.int32)
    z, bar = cards.array(1, z), cards.array(1, bar)
    made(x, y)
    staged(z, bar)
    loaded = cards.of(1).count("cuModuleLoadData")
    cards.make_current(cards.context_on(1))
    for _ in range(2):
        made(x, y)
        staged(z, bar)
    cards.make_current(0)
    made(x, y)
    staged(z, bar)
    assert cards.of(1).count("cuModuleLoadData") == 2 * loaded


def test_a_launch_that_is_known_is_not_made_in_another_context(cards: TwoCards) -> None:
    x, y = floats(8), floats(8)
    for array in (x, y):
        cards.array(1, array)
    made, given = kernel(DOUBLED), (LikeCupy(x, 1), LikeCupy(y, 1))
    for _ in range(2):
        made(*given, stream=0)
    loaded = cards.of(1).count("cuModuleLoadData")
    cards.make_current(cards.context_on(1))
    made(*given, stream=0)
    assert cards.of(1).count("cuModuleLoadData") == 2 * loaded and len(cards.launches) == 3


def test_each_thread_has_words_of_its_own_on_its_own_default_stream(cards: TwoCards) -> None:
    """Stream 2 is another stream in every thread; stream 1 is stream 0."""
    made = kernel(read("examples/staged.ph"))

    def work(stream: int) -> None:
        made(cards.array(0, floats(4096).reshape(1, -1)), stream=stream)

    for stream in (driver.PER_THREAD_STREAM, driver.PER_THREAD_STREAM, 0, driver.LEGACY_STREAM):
        thread = threading.Thread(target=work, args=(stream,))
        thread.start()
        thread.join()
    assert len({channel.barrier(0) for channel in launch._channels.values()}) in (2, 3)  # a thread's number comes again
    assert len({key[2] for key in launch._channels if not isinstance(key[2], tuple)}) == 1


def test_waiting_for_one_device_leaves_the_other_alone(cards: TwoCards) -> None:
    made = kernel(DOUBLED)
    for device in (0, 1):
        made(cards.array(device, floats(8)), cards.array(device, floats(8)))
    cards.asked.clear()
    launch.synchronize(1)
    assert cards.asked == [("cuCtxSynchronize", 1)]
    cards.asked.clear()
    launch.synchronize()  # also where no kernel had a barrier
    assert cards.asked == [("cuCtxSynchronize", 0), ("cuCtxSynchronize", 1)]


def test_who_waits_for_a_device_hears_of_its_kernels_alone(cards: TwoCards) -> None:
    made = kernel(read("examples/staged.ph"))
    for device in (0, 1):
        made(cards.array(device, floats(4096).reshape(1, -1)))
    stopped = next(channel for channel in launch._channels.values() if channel.device == 0)
    stopped.report[0] = 1  # as a kernel leaves it that was stopped
    launch.synchronize(1)
    with pytest.raises(KernelFault):
        launch.synchronize(0)


def test_host_arrays_run_on_the_device_that_was_asked_for(cards: TwoCards) -> None:
    made, x, y = kernel(DOUBLED), floats(1000), numpy.zeros(1000, numpy.float32)
    result = cuda_host.run(made, made.bound((x, y), {}, {}), LaunchOptions(), "cuda:1", repeat=2)
    numpy.testing.assert_array_equal(result.arrays["Y"], x * 2)
    assert not cards.of(0) and [where for where, *_ in cards.launches] == [1, 1]


def test_how_many_are_resident_is_asked_of_the_current_device(cards: TwoCards) -> None:
    made = kernel(read("examples/staged.ph"))
    cards.make_current(cards.primaries[1])
    assert made.persistent_grid() == RESIDENT[1] and not cards.of(0)
    assert made.persistent_grid(device=0) == RESIDENT[0]
    with pytest.raises(LaunchError, match="no CUDA device 2: 2 answer"):
        made.persistent_grid(device=2)

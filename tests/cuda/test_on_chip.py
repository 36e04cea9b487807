"""Tiles that stay on chip across barriers give the same bits as those that go through memory, and as the reference."""

from __future__ import annotations

import numpy
import pytest

from phobos.cli import main
from phobos.runtime.cuda import launch
from phobos.runtime.kernel import Kernels
from tests.codegen.test_on_chip import KERNELS, stays

N = 20_000  # nineteen tiles and a piece


def arguments(name: str) -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(5)
    text = KERNELS[name].text
    found: dict[str, numpy.ndarray] = {}
    for tensor in ("X", "Y", "A", "B", "PART"):
        if f"{tensor}: tensor" in text:
            found[tensor] = random.random((1, 2048) if tensor == "PART" else (N,), numpy.float32)
    return found


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("grid", [5, 7, 20, 32])
def test_the_same_bits_on_chip_through_memory_and_by_the_reference(cupy, name: str, grid: int) -> None:
    case = KERNELS[name]
    made = Kernels("<text>", case.text).one()
    given = arguments(name)
    if case.flat:
        given["X"] = given["X"].reshape(1, N)
    on_chip = {key: cupy.asarray(array) for key, array in given.items()}
    through = {key: cupy.asarray(array) for key, array in given.items()}
    judged = {key: array.copy() for key, array in given.items()}
    count = {"count": 5} if "count: i64" in case.text else {}
    assert stays(made.plan(**on_chip, **count, grid=grid)) == case.stays
    assert stays(made.plan(**on_chip, **count, grid=grid, keep=False)) == []
    made(**on_chip, **count, grid=grid, timeout=20.0)
    made(**through, **count, grid=grid, timeout=20.0, keep=False)
    launch.synchronize()
    made.reference(**judged, **count, grid=grid)
    for key in given:
        assert bool((on_chip[key].view(numpy.int32) == through[key].view(numpy.int32)).all()), key
        if case.exact:
            numpy.testing.assert_array_equal(on_chip[key].get(), judged[key])
        else:
            numpy.testing.assert_allclose(on_chip[key].get(), judged[key], rtol=1e-5)


def test_the_documented_stages_hold_four_tiles_in_sixteen_registers(cupy) -> None:
    made = Kernels("<text>", KERNELS["staged"].text).one()
    x = cupy.zeros(1 << 20, numpy.float32)
    plan = made.plan(x, count=10, grid=264)
    assert any("`X` stays on chip, 4 tiles in 16 registers a thread" in note for note in plan.notes), plan


def test_one_array_for_two_tensors_goes_through_memory(cupy) -> None:
    made = Kernels("<text>", KERNELS["several"].text).one()
    x = cupy.ones(N, numpy.float32)
    plan = made.plan(x, x, cupy.ones(N, numpy.float32), count=2, grid=7)
    assert any("`X` and `A` share memory" in note for note in plan.notes), plan
    made(x, x, cupy.ones(N, numpy.float32), count=2, grid=7)
    launch.synchronize()
    assert bool((x == 5).all())  # 1 -> 1 * 1 + 1 -> 2 * 2 + 1


def test_a_captured_launch_replays(cupy) -> None:
    made = Kernels("<text>", KERNELS["staged"].text).one()
    x = cupy.full(N, 2.0 + 2.0**10, numpy.float32)
    made(x, count=1, grid=7)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        made(x, count=1, grid=7)
        graph = stream.end_capture()
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert bool((x == 2.0 + 2.0**6).all())


def test_the_command_says_what_stays_and_agrees_with_the_reference(cupy, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "examples/staged.ph", "--device", "cuda", "--verify"]
    assert main(words) == 0
    assert "`X` stays on chip" in capsys.readouterr().out
    assert main([*words, "--no-keep"]) == 0
    shown = capsys.readouterr().out
    assert "`X` goes through memory at every barrier, as asked for" in shown and "stays on chip" not in shown

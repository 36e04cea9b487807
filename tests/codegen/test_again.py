"""A launch that is known: arrays of the same kind and other floats decide nothing anew; whatever decides, does."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from phobos.errors import LaunchError
from phobos.runtime.cuda import launch as cuda_launch
from phobos.runtime.cuda import preparing
from phobos.runtime.kernel import kernel
from tests.codegen import host
from tests.codegen.fake_device import FakeDriver
from tests.codegen.two_cards import LikeCupy

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

SHIFTED = """
kernel shifted(X: tensor<f32>[N], Y: tensor<f32>[N], a: f32, steps: i32) {
  let s = ctx.block.x * 256
  Y[s :+ 256] = X[s - 1 :+ 256] * a + f32(steps)
}
"""


def given(array: numpy.ndarray) -> LikeCupy:
    return LikeCupy(array, 0)


def room(offset: int = 0, count: int = 1000) -> numpy.ndarray:
    """Cells that begin `offset` cells after a multiple of 64 bytes, in memory of their own."""
    held = numpy.zeros(count + 32, numpy.float32)
    first = -held.ctypes.data % 64 // 4 + offset
    return held[first : first + count]


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was decided anew, on a device that is this machine."""
    FakeDriver(monkeypatch)
    made: list[Any] = []

    def prepared(*arguments: Any) -> Any:
        made.append(preparing.prepared(*arguments))
        return made[-1]

    monkeypatch.setattr(cuda_launch, "prepared", prepared)
    return made


def expected(x: numpy.ndarray, a: float, steps: int) -> numpy.ndarray:
    return numpy.concatenate([[0], x[:-1]]).astype(numpy.float32) * numpy.float32(a) + steps


def test_other_arrays_and_floats_are_launched_as_those_before(decided: list[Any]) -> None:
    made = kernel(SHIFTED)
    for n in range(5):
        x, y = room(), room()
        x[:] = numpy.arange(1000) + n
        made(given(x), given(y), 0.5 + n, 3, stream=0)
        numpy.testing.assert_allclose(y, expected(x, 0.5 + n, 3), rtol=1e-6)
    assert len(decided) == 1
    for n in range(3):
        x, y = room(), room()
        x[:] = numpy.arange(1000) + n
        made(a=2.0 * n, Y=given(y), steps=4, X=given(x), stream=0)
        numpy.testing.assert_allclose(y, expected(x, 2.0 * n, 4), rtol=1e-6)
    assert len(decided) == 2


@pytest.mark.parametrize("what", ["an integer", "a shape", "an alignment", "an option"])
def test_what_decides_is_decided_anew(decided: list[Any], what: str) -> None:
    made, x, y = kernel(SHIFTED), room(), room()
    made(given(x), given(y), 1.0, 3, stream=0)
    count = 900 if what == "a shape" else 1000
    x, y = room(what == "an alignment", count), room(0, count)
    x[:] = numpy.arange(count)
    steps = 5 if what == "an integer" else 3
    more: dict[str, Any] = {"debug": True} if what == "an option" else {}
    for _ in range(2):
        made(given(x), given(y), 1.0, steps, stream=0, **more)
        numpy.testing.assert_allclose(y, expected(x, 1.0, steps), rtol=1e-6)
    assert len(decided) == 2


def test_arrays_that_share_memory_are_refused_though_the_launch_is_known(decided: list[Any]) -> None:
    made, both = kernel(SHIFTED), room(0, 1500)
    made(given(room()), given(room()), 1.0, 3, stream=0)
    for _ in range(2):
        with pytest.raises(LaunchError, match="share memory"):
            made(given(both[:1000]), given(both[496:1496]), 1.0, 3, stream=0)
    made(given(room()), given(room()), 1.0, 3, stream=0)
    assert len(decided) == 1


def test_arrays_that_may_be_one_are_known_by_their_addresses(decided: list[Any]) -> None:
    """One array for two tensors says nothing of others that are apart."""
    made = kernel(SHIFTED.replace("s - 1", "s"))
    for _ in range(2):
        x = room()
        x[:] = 1.0
        for _ in range(2):
            made(given(x), given(x), 2.0, 0, stream=0)
        assert (x == 4.0).all()
    assert len(decided) == 2


def test_a_float_for_an_integer_decides(decided: list[Any]) -> None:
    made = kernel(SHIFTED)
    for steps in (3.0, 4.0, 4.0):
        x, y = room(), room()
        made(given(x), given(y), 1.0, steps, stream=0)
        assert (y == steps).all()
    with pytest.raises(LaunchError, match=r"`steps` is 4.5"):
        made(given(room()), given(room()), 1.0, 4.5, stream=0)


def test_a_launch_that_looks_for_races_is_of_its_own_arrays(decided: list[Any]) -> None:
    made = kernel(SHIFTED)
    for n in range(2):
        x, y = room(), room()
        x[:] = numpy.arange(1000) + n
        made(given(x), given(y), 1.0, 3, stream=0, detect="races")
        numpy.testing.assert_allclose(y, expected(x, 1.0, 3), rtol=1e-6)
    assert len(decided) == 2

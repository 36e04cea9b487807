"""Tests on a card: each is marked `gpu`, and each leaves the context usable, or says that it does not."""

from __future__ import annotations

import numpy
import pytest

from phobos.runtime.cuda import driver, launch
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.kernel import kernel
from tests.codegen import compare

ORDINARY = """
kernel ordinary(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let s = ctx.block.x * 1024
  Y[s :+ 1024] = X[s :+ 1024] * 2.0 + 1.0
}
"""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Of this folder alone, and before the collection as a whole is looked at for what has to be skipped."""
    item.add_marker(pytest.mark.gpu)


def launched(case: compare.Case, **how: object) -> dict[str, numpy.ndarray]:
    """The arrays of a case after a launch that says how."""
    there = {name: DeviceArray(array, 0) for name, array in case.arrays().items()}
    grid = case.blocks[0] if case.program.is_persistent else case.blocks
    made = kernel(case.text, case.kernel)
    made(**there, **case.params, constants=dict(case.constants), grid=grid, timeout=20.0, unchecked=True, **how)
    launch.synchronize()
    return {name: array.numpy() for name, array in there.items()}


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def still_usable(cupy):
    """After the test, an ordinary kernel runs in the same process and context, and its result is right."""
    yield
    x = cupy.arange(100_000, dtype=numpy.float32)
    y = cupy.zeros_like(x)
    kernel(ORDINARY)(x, y)
    launch.synchronize()
    assert bool((y == x * 2 + 1).all())
    assert driver.device_count() > 0

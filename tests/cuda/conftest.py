"""Tests on a card: each is marked `gpu`, and each leaves the context usable, or says that it does not."""

from __future__ import annotations

import numpy
import pytest

from phobos.runtime.cuda import driver, launch
from phobos.runtime.kernel import kernel

ORDINARY = """
kernel ordinary(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let s = ctx.block.x * 1024
  Y[s :+ 1024] = X[s :+ 1024] * 2.0 + 1.0
}
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/cuda/" in str(item.path).replace("\\", "/"):
            item.add_marker(pytest.mark.gpu)


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

"""Tests on a card: each is marked `gpu`, and each leaves the context usable, or says that it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy
import pytest

from phobos.runtime.cuda import driver, launch
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.kernel import Kernel, kernel
from phobos.semantics.grid import blocks_at
from phobos.semantics.program import Program, Settings
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


@dataclass(frozen=True)
class Case:
    """A kernel of the tests of generated code, with its numbers, for `agree` of those on a card. `arrays` gives its
    arguments anew on the host, `there` on the card."""

    made: Kernel
    settings: Settings
    program: Program
    sizes: dict[str, int]
    params: dict[str, float]
    given: Mapping[str, object]
    grid: tuple[int, int, int]

    def arrays(self) -> dict[str, numpy.ndarray]:
        return compare.arrays_for(self.program, self.sizes, self.given)

    def launched(self, **how: object) -> dict[str, numpy.ndarray]:
        """The arrays after a launch that says how."""
        there = {name: DeviceArray(array, 0) for name, array in self.arrays().items()}
        constants = dict(self.settings.constants)
        grid = self.grid[0] if self.program.is_persistent else self.grid
        self.made(**there, **self.params, constants=constants, grid=grid, timeout=20.0, unchecked=True, **how)
        launch.synchronize()
        return {name: array.numpy() for name, array in there.items()}


def case_of(
    text: str, sizes: Mapping[str, int] | None, params: Mapping[str, float] | None, name: str | None,
    grid: tuple[int, int, int] | None, given: Mapping[str, object] | None, constants: Mapping[str, int] | None,
) -> Case:  # fmt: skip
    settings = Settings(constants=tuple((constants or {}).items()))
    program = compare.unit_of(text, name, settings)[1].program
    numbers, extents = dict(params or {}), dict(sizes or {})
    whole = {k: v for k, v in numbers.items() if isinstance(v, int)}
    return Case(
        kernel(text, name), settings, program, extents, numbers, given or {},
        grid or blocks_at(program, {**extents, **whole}),
    )  # fmt: skip


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

"""Every schedule on the card gives the bits that the flat one gives: examples, corpus, and the language's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import phobos
from phobos.codegen.emitted import Emitted
from phobos.runtime.cuda import launch
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.given import arguments, constants_in
from phobos.runtime.headers import Run
from phobos.runtime.kernel import Kernel, kernel
from phobos.semantics.schedules import BLOCKED, INTERLEAVED, XYZ
from tests.codegen import compare
from tests.codegen import test_language as language
from tests.codegen.test_language import *  # noqa: F403
from tests.cuda.conftest import launched
from tests.run.test_schedules import ALL, ordinary

pytestmark = pytest.mark.gpu

HOW: tuple[dict[str, object], ...] = (
    {"schedule": XYZ, "l2_group": 2}, {"schedule": "flat", "l2_group": 3}, {"schedule": BLOCKED},
    {"schedule": BLOCKED, "resident": 1}, {"schedule": BLOCKED, "resident": 3, "l2_group": 2},
    {"schedule": INTERLEAVED}, {"schedule": INTERLEAVED, "resident": 1, "l2_group": 4},
    {"schedule": INTERLEAVED, "resident": 5},
)  # fmt: skip


def alike_on_card(*arguments: Any, **named: Any) -> Emitted:
    case = compare.Case(*arguments, **named)
    if ordinary(kernel(case.text, case.kernel)):
        flat = launched(case)
        for how in HOW:
            for name, array in launched(case, **how).items():
                assert array.tobytes() == flat[name].tobytes(), (name, how)
    return case.emitted()


@pytest.fixture(autouse=True)
def on_the_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(language, "agree", alike_on_card)
    yield


@pytest.mark.parametrize(
    ("path", "kernel", "run"), [one for one in ALL if ordinary(one[1])], ids=lambda one: getattr(one, "stem", "")
)
def test_examples_and_corpus(path: Path, kernel: Kernel, run: Run) -> None:
    program = kernel.analysed()[1].program
    constants = constants_in(program, run.names)

    def once(**how: object) -> dict[str, bytes]:
        given = arguments(program, run.names, 0, {name: str(path.parent) for name in run.names}, constants)
        arrays = {name: DeviceArray(array, 0) for name, array in given.arrays.items()}
        kernel(**arrays, **given.numbers, constants=constants, timeout=20.0, **how)  # type: ignore[arg-type]
        launch.synchronize()
        return {name: array.numpy().tobytes() for name, array in arrays.items()}

    flat = once()
    for how in HOW:
        assert once(**how) == flat, how


UNEVEN = """
kernel uneven(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let r = ctx.block.x * 3
  let c = ctx.block.y * 37
  if (ctx.block.x + ctx.block.y) % 5 == 4 { return }
  var t: tile<f32>[3, 37] = X[r :+ 3, c :+ 37]
  for i in range(0, ctx.block.x % 7) { t = t * 0.5 + 1.0 }
  Y[r :+ 3, c :+ 37] = transpose(transpose(t) + 1.0)
}
"""


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 37), (1000, 501), (7001, 40), (2, 5000)])
def test_extents_that_divide_in_no_dimension(m: int, n: int) -> None:
    made = phobos.kernel(UNEVEN)
    x = numpy.random.default_rng(5).random((m, n), numpy.float32)
    results = []
    for how in ({}, *HOW):
        y = DeviceArray(numpy.zeros_like(x), 0)
        for _ in range(2):
            made(DeviceArray(x, 0), y, **how)
        launch.synchronize()
        results.append(y.numpy().tobytes())
    assert set(results) == {results[0]}
    want = numpy.zeros_like(x)
    made.reference(x, want)
    numpy.testing.assert_allclose(numpy.frombuffer(results[0], numpy.float32).reshape(m, n), want, rtol=1e-6)


def test_workers_are_what_the_device_holds() -> None:
    made = phobos.kernel(UNEVEN)
    x, y = (DeviceArray(numpy.zeros((9000, 400), numpy.float32), 0) for _ in range(2))
    plan = made.plan(x, y, schedule=INTERLEAVED)
    assert plan.workers == plan.resident == made.plan(x, y).resident
    assert plan.tiles == 3000 * 11 and plan.rounds == -(-plan.tiles // plan.workers)


def test_a_fault_names_the_block_of_the_kernels_own_grid(still_usable: None) -> None:
    """Only block (4, 3) of 5 x 4 reads outside: number 19."""
    text = """
    kernel k(A: tensor<i32>[N], B: tensor<i32>[4]) {
      if A[ctx.block.x + ctx.block.y * ctx.blocks.x] == 1 { B[0] = 1 }
    }
    """
    made = phobos.kernel(text)
    a, b = DeviceArray(numpy.zeros(19, numpy.int32), 0), DeviceArray(numpy.zeros(4, numpy.int32), 0)
    for how in ({}, *HOW):
        made(a, b, grid=(5, 4), debug=True, **how)
        with pytest.raises(phobos.KernelFault, match="index 19 is outside `A`") as error:
            launch.synchronize()
        assert error.value.blocks == (19,), how

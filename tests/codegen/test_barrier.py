"""The barrier's two shapes on the host: one word, and a word for every 64 CTAs."""

from __future__ import annotations

import numpy
import pytest

from tests.codegen import host
from tests.codegen.compare import emitted

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

PASSED_ON = """
@launch(32)
@persistent
kernel passed_on(A: tensor<i32>[2, N], WRONG: tensor<i32>[N], BAR: tensor<i32>[2], rounds: i64) {
  let b = ctx.block.x
  let next = (b + 1) % ctx.blocks.x
  var wrong = 0
  for r in range(0, rounds) {
    A[r % 2, b] = r + b
    grid_barrier(BAR)
    if A[r % 2, next] != r + next {
      wrong += 1
    }
  }
  WRONG[b] = wrong
}
"""


@pytest.mark.parametrize(("blocks", "limit"), [(5, None), (64, 4), (65, 4), (130, 4), (1, 0)])
@pytest.mark.parametrize("rounds", [3, 4])
def test_nobody_passes_before_all_have_come(blocks: int, limit: int | None, rounds: int) -> None:
    """`limit` lowers the number of CTAs up to which one word is used, so that few are enough for groups."""
    made = emitted(PASSED_ON)
    if limit is not None:
        object.__setattr__(made, "text", made.text.replace("gridDim.x <= 768", f"gridDim.x <= {limit}"))
        assert f"gridDim.x <= {limit}" in made.text
    bar = numpy.zeros(2, numpy.int32)
    for order in (0, 1, 5):
        wrong = numpy.full(blocks, 7, numpy.int32)
        arrays = {"A": numpy.zeros((2, blocks), numpy.int32), "WRONG": wrong, "BAR": bar}
        host.run(made, arrays, {"N": blocks, "rounds": rounds}, (blocks, 1, 1), order=order)
        assert not wrong.any()
        if rounds % 2 == 0:
            assert not bar.any(), "an even number of barriers leaves the word as it was"
        bar[:] = 0

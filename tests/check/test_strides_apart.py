"""Strided loops of unlike steps in one phase: whose cells are whose is decided for all grids and sizes."""

from __future__ import annotations

import pytest

from phobos.check import findings
from phobos.check.configuration import DEFAULT

TEXT = """\
@persistent
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {{
  let p = ctx.block.x
  for t in range({one}) {{
    Y[t :+ 4] = X[t :+ 4] * 0.5
  }}
  for u in range({other}) {{
    X[u :+ 4] = Y[u :+ 4] + 1.0
  }}
}}
"""
GRID = "ctx.blocks.x"

APART = [
    (f"p * 4, N, {GRID} * 4", f"p * 4, N, {GRID} * 8"),
    (f"p * 4, N, {GRID} * 12", f"p * 4, N, {GRID} * 4"),
    (f"p * 4, N, {GRID} * 8", f"p * 4 + {GRID} * 4, N, {GRID} * 8"),
    (f"p * 4, N, {GRID} * 20", f"(p + 3 * {GRID}) * 4, N, {GRID} * 4"),
]
MEET = [
    (f"p * 4, N, {GRID} * 4", "p * 4, N, 8"),
    (f"p * 4, N, {GRID} * 4", f"p * 4 + 4, N, {GRID} * 8"),
    (f"p * 4, N, {GRID} * 4", f"p * 5, N, {GRID} * 8"),
    (f"p * 4, N, {GRID} * 4", f"p * 4, N, {GRID} * 8 + 4"),
]


def said(one: str, other: str) -> set[str]:
    found = findings("k.ph", TEXT.format(one=one, other=other), DEFAULT)
    return {d.code for d in found if d.code in ("PH501", "PH502", "PH503", "PH506")}


@pytest.mark.parametrize("one, other", APART)
def test_a_block_that_skips_some_of_its_own_cells_keeps_to_them(one: str, other: str) -> None:
    assert said(one, other) == set()


@pytest.mark.parametrize("one, other", MEET)
def test_a_block_that_comes_to_a_neighbours_does_not(one: str, other: str) -> None:
    assert said(one, other)

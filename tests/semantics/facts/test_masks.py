"""Masks and bounds of points: needed, proved away, peeled, and what the proof rests on."""

from __future__ import annotations

import pytest

from phobos.semantics.masks import masks_of

from .cases import Case, cases, masks, program

CASES = cases("masks.md")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case: Case) -> None:
    assert masks(case.text) == case.wanted


def test_a_peeled_loop_says_from_which_bound_on_rounds_are_whole() -> None:
    shared = program("""@persistent
kernel k(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = 1.0
  }
}
""")
    ((mask,),) = masks_of(shared).values()
    assert mask is not None and mask.peeled is not None and mask.peel is not None
    assert mask.peel.constant == 64


def test_a_proof_names_only_the_promises_it_needs() -> None:
    shared = program("""@aligned(M = 8, N = 64)
kernel k(X: tensor<f32>[M, N]) {
  for t in range(0, N, 64) {
    X[0 :+ 4, t :+ 64] = 1.0
  }
}
""")
    ((rows, columns),) = masks_of(shared).values()
    assert rows is not None and columns is not None
    assert rows.needed and [p.dim for p in columns.promises] == ["N"]
    assert "@aligned(N = 64)" in columns.reason

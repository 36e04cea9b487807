"""Pairs of accesses: apart by proof, met by a witness, or honestly unknown."""

from __future__ import annotations

import pytest

from phobos.semantics.conflicts import conflicts_of, conflicts_without
from phobos.semantics.values import statements_of

from .cases import Case, cases, conflicts, program

CASES = cases("conflicts.md")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case: Case) -> None:
    assert conflicts(case.text) == case.wanted


def test_a_witness_is_a_grid_sizes_two_blocks_and_a_cell() -> None:
    shared = program("""@persistent
kernel k(X: tensor<f32>[N]) {
  X[ctx.block.x * 64 :+ 128] = f32(ctx.block.x)
}
""")
    (conflict,) = conflicts_of(shared)
    witness = conflict.witness
    assert witness is not None and conflict.certain
    (cell,) = witness.cell
    first, second = witness.blocks
    assert first != second and max(first, second) < witness.grid
    assert all(64 * block <= cell < 64 * block + 128 for block in witness.blocks)
    assert cell < dict(witness.sizes)["N"]


def test_a_barrier_without_a_hazard_across_it_changes_nothing() -> None:
    shared = program("""@persistent
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  X[p] = 1.0
  grid_barrier(BAR)
  X[p] = 2.0
  grid_barrier(BAR)
  Y[p] = X[p + 1]
}
""")
    first, second = (s for s in statements_of(shared.body) if type(s).__name__ == "Barrier")
    assert conflicts_of(shared) == () or all(c.kind == "alias" for c in conflicts_of(shared))
    assert not [c for c in conflicts_without(shared, first) if c.kind != "alias"]
    assert [c.kind for c in conflicts_without(shared, second) if c.kind != "alias"] == ["race"]


def test_two_tensors_that_would_race_if_they_were_one() -> None:
    shared = program("""@persistent
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], Z: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = Y[t + 1 :+ 64] + Z[t :+ 64]
  }
}
""")
    alias = [
        {c.first.access.base.name, c.second.access.base.name} for c in conflicts_of(shared) if c.kind == "alias"
    ]
    assert alias == [{"X", "Y"}]

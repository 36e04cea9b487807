"""Divergent barriers: which, by which construct, how surely; chains, levels, assumptions."""

from __future__ import annotations

import pytest

from phobos.semantics import ir
from phobos.semantics.levels import Level
from phobos.semantics.uniformity import uniformity_of
from phobos.semantics.values import statements_of

from .cases import Case, cases, divergences, program

CASES = cases("uniformity.md")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case: Case) -> None:
    assert divergences(case.text) == case.wanted


def chain(text: str) -> list[tuple[str, str]]:
    (divergence,) = uniformity_of(program(text)).divergences
    return [(origin.kind, text[origin.span.start : origin.span.end]) for origin in divergence.chain]


def test_the_chain_goes_from_the_identifier_to_the_origin() -> None:
    text = """kernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  let base = p * 4
  if base > 9 {
    grid_barrier(BAR)
  }
}
"""
    assert chain(text) == [("block", "base"), ("block", "ctx.block.x")]


def test_the_chain_of_a_variable_set_under_a_condition_goes_on_to_that_condition() -> None:
    text = """kernel k(BAR: tensor<i32>[2]) {
  var go = 0
  if ctx.block.x == 0 {
    go = 1
  }
  if go == 1 {
    grid_barrier(BAR)
  }
}
"""
    kinds = [kind for kind, _ in chain(text)]
    assert kinds == ["assigned-under", "assigned-under", "block"]
    assert chain(text)[0][1] == "go"


def test_a_load_that_blocks_write_says_so() -> None:
    text = """kernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let seen = X[0]
  X[ctx.block.x] = 2.0
  if seen > 1.0 {
    grid_barrier(BAR)
  }
}
"""
    (divergence,) = uniformity_of(program(text)).divergences
    assert [origin.kind for origin in divergence.chain] == ["load", "load"]
    assert "`X` is written by blocks in this phase" in divergence.chain[-1].message


def test_levels_of_variables() -> None:
    shared = program("""@persistent
@autotune(T in [4])
kernel k(X: tensor<f32>[N], n: i32, C: tensor<i32>[1]) {
  let constant = T * 2
  let uniform = n + N + ctx.blocks.x
  let loaded = X[0]
  let varying = ctx.block.x
  let ticket = atomic_add(C, 0, 1)
  var mixed = 1
  if varying == 1 {
    mixed = 2
  }
  for r in range(varying, varying + 4) {
    let inside = r - varying
  }
}
""")
    uniformity = uniformity_of(shared)
    levels = {v.name: uniformity.level(v) for v in shared.variables if v.name}
    assert levels["constant"] == Level.CONSTANT
    assert levels["uniform"] == Level.UNIFORM
    assert levels["loaded"] == Level.UNIFORM
    assert levels["varying"] == levels["ticket"] == levels["mixed"] == Level.VARYING
    assert levels["inside"] <= Level.UNIFORM


def test_an_assumption_that_is_not_needed_is_known() -> None:
    shared = program("""kernel k(X: tensor<i32>[N], n: i32) {
  let a = n + 1
  // phobos: assume uniform(a)
  X[ctx.block.x] = a
  let b = X[ctx.block.x]
  // phobos: assume uniform(b)
  X[ctx.block.x] = b
}
""")
    assert [assumption.needed for assumption in uniformity_of(shared).assumptions] == [False, True]


def test_control_of_statements() -> None:
    shared = program("""kernel k(X: tensor<f32>[N]) {
  X[0] = 1.0
  if ctx.block.x == 0 {
    X[1] = 1.0
  }
  X[2] = 1.0
}
""")
    uniformity = uniformity_of(shared)
    stores = [s for s in statements_of(shared.body) if isinstance(s, ir.Store)]
    assert [uniformity.control(store) for store in stores] == [Level.UNIFORM, Level.VARYING, Level.UNIFORM]

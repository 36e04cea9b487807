"""Of text that did not parse the parser speaks; nothing is said of what follows from it, all is said of the rest."""

from __future__ import annotations

import pytest

from phobos.semantics import ir
from phobos.semantics.module import Module, analyse
from phobos.semantics.types import type_text
from phobos.semantics.values import statements_of

HEAD = "kernel k(X: tensor<f32>[N], n: i32) {\n  let p = ctx.block.x\n  var t: tile<f32>[64] = 0.0\n"


def said(module: Module) -> list[str]:
    return [problem.code for unit in module.units for problem in unit.problems]


@pytest.mark.parametrize(
    "text",
    [
        "kernel k(X: tensor<f32>[N, Y: tensor<f32>[N]) {\n  X[0] = Y[0]\n}\n",  # a bracket lost among parameters
        "kernel k(X: tensor<f32>[], n: i32) {\n  X[N - 1] = f32(n)\n}\n",  # a dimension lost
        "@autotune(T in [64],  in [20])\nkernel k(X: tensor<f32>[N]) {\n  X[0 :+ T] = ROUNDS\n}\n",
        HEAD + "  for in range(0, N) {\n    X[i] = 1.0\n  }\n}\n",  # the loop's variable lost
        HEAD + "  let = 4\n  X[q] = 1.0\n}\n",  # a name lost
        HEAD + "  for i in range(0, N)\n    X[i] = 1.0\n  }\n}\n",  # a brace lost
        HEAD + "  while n i {\n    X[p] = 1.0\n  }\n}\n",  # an operator lost
        HEAD + "  let y = sqrt(n f32(N))\n  X[0] = y\n}\n",
        HEAD + "  var acc: tilef32>[64] = 0.0\n  X[0 :+ 64] = acc\n}\n",
        HEAD + "  let y = q +\n}\n",
        # values cut short: what they would have been is not known
        HEAD + "  let y = n 2.0\n  X[0] = y * 2.0\n}\n",
        HEAD + "  var y = n  3 == 0\n  if y {\n    X[0] = 1.0\n  }\n}\n",
        HEAD + "  let y = X[0 :+ 4\n  X[0] = X[0] + y\n}\n",
        HEAD + "  let y = n ? 1.0 : 2.0\n  let z = y + 1\n  X[0] = X[0] * z\n}\n",
    ],
)
def test_what_follows_is_not_said(text: str) -> None:
    module = analyse("f.ph", text)
    assert any(item.problems for _, item in module.file.items)
    assert said(module) == []


def test_other_mistakes_are_said() -> None:
    module = analyse("f.ph", HEAD + "  let y = (n +\n  X[0] = 1\n  X[q] = 1.0\n  t = yes\n}\n")
    assert said(module) == ["PH101", "PH101"]


def test_a_variable_whose_type_is_written_is_known_all_the_same() -> None:
    text = HEAD + "  let y: f32 = n 2.0\n  let z = n\n  X[y] = z * 2.0\n}\n"
    assert said(analyse("f.ph", text)) == ["PH106", "PH104"]


def test_a_value_cut_short_in_a_function_is_no_mistake_behind_it() -> None:
    text = "fn f(n: i64) -> f32 {\n  let y = n 2.0\n  return y * 2.0\n}\n"
    text += "kernel k(X: tensor<f32>[N]) {\n  X[0] = f(1)\n}\n"
    assert said(analyse("f.ph", text)) == []


@pytest.mark.parametrize("written", ["T = 64", "T", "_S in [2], T"])
def test_a_constant_that_is_no_search_list_is_not_undefined_as_well(written: str) -> None:
    text = f"@autotune({written})\nkernel k(X: tensor<f32>[N]) {{\n  X[0 :+ T] = 1.0\n}}\n"
    assert said(analyse("f.ph", text)) == ["PH403"]


def test_the_kernel_after_a_broken_one_is_understood() -> None:
    broken = "kernel a(X: tensor<f32>[N) {\n  X[ = 1\n}\n"
    module = analyse("f.ph", broken + "kernel b(Y: tensor<f32>[N]) {\n  Y[q] = 1.0\n}\n")
    assert [p.code for p in module.kernels["b"].problems] == ["PH101"]


def test_a_broken_function_is_no_mistake_of_its_callers() -> None:
    text = "fn f(x: f32) -> f32 {\n  return x +\n}\nkernel k(X: tensor<f32>[N]) {\n  X[0] = f(1.0)\n}\n"
    assert said(analyse("f.ph", text)) == []


@pytest.mark.parametrize(
    "tail",
    ["  X[p * ", "  if p <", "  grid_", "  for i in range(0, ", "  let q = ", "  while ", "  t = exp(", "  ctx.block."],
)
def test_unfinished_code_keeps_what_stands_before(tail: str) -> None:
    (unit,) = analyse("f.ph", HEAD + tail).units
    types = {variable.name: type_text(variable.type) for variable in unit.program.variables}
    assert types["p"] == "index"
    assert types["t"] == "tile<f32>[64]"
    assert unit.problems == ()


@pytest.mark.parametrize(
    "call", ["grid_barrier()", "grid_barrier(B, B)", "grid_barrier(X)", "grid_barrier(Q)", "sync(B, B)"]
)
def test_a_barrier_that_is_written_wrongly_still_stands(call: str) -> None:
    text = (
        "fn sync(B: tensor<i32>[n]) {\n  grid_barrier(B)\n}\n"
        f"@persistent\nkernel k(X: tensor<f32>[N], B: tensor<i32>[2]) {{\n  X[0] = 1.0\n  {call}\n  X[1] = 1.0\n}}\n"
    )
    unit = analyse("f.ph", text).kernels["k"]
    assert sum(isinstance(statement, ir.Barrier) for statement in statements_of(unit.program.body)) == 1
    assert len(unit.problems) == 1

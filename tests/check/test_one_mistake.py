"""One mistake gives one diagnostic."""

from __future__ import annotations

import pytest

from phobos.check import findings

ONE = {
    "what stands only in something that cannot be subscripted": (
        "kernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {\n  let a = X[0 :+ 4]\n  let n = 2\n"
        "  Y[0] = (a * f32(n))[0]\n}\n",
        ["PH106"],
    ),
    "a statement that both writes and reads what another block writes": (
        "@persistent\nkernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {\n"
        "  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {\n    X[t :+ 128] = X[t :+ 128] + 1.0\n  }\n"
        "  grid_barrier(BAR)\n}\n",
        ["PH501"],
    ),
    "a function that is wrong by itself, inlined three times": (
        "fn f(x: f32, n: i32) -> f32 {\n  return x * n\n}\n"
        "kernel k(X: tensor<f32>[N]) {\n  X[0] = f(X[0], 1)\n  X[1] = f(X[1], 2)\n  X[2] = f(X[2], 3)\n}\n",
        ["PH104"],
    ),
    "a barrier under a branch that varies for two reasons": (
        "@persistent\nkernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {\n"
        "  if ctx.block.x == 0 && ctx.block.x * 64 < N {\n    X[0] = 1.0\n    grid_barrier(BAR)\n  }\n}\n",
        ["PH203"],
    ),
    "nested constructs that vary: the outermost names it": (
        "@persistent\nkernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {\n"
        "  for t in range(ctx.block.x, N, ctx.blocks.x) {\n"
        "    if t == 3 {\n      X[t] = 1.0\n      grid_barrier(BAR)\n    }\n  }\n}\n",
        ["PH205"],
    ),
    "a stride that does not fit, and the races that follow from it": (
        "@persistent\nkernel k(X: tensor<f32>[N]) {\n  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 32) {\n"
        "    X[t :+ 64] = X[t :+ 64] + 1.0\n  }\n}\n",
        ["PH211"],
    ),
    "a statement that does not parse, in a kernel that would race and hang": (
        "@persistent\nkernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {\n  let p = ctx.block.x\n  let x = = 3\n"
        "  X[p * 4 :+ 8] = f32(p)\n  X[0] = f32(p)\n  if p == 0 {\n    grid_barrier(BAR)\n  }\n}\n",
        ["PH001"],
    ),
    "a brace that is missing behind an `if`, so that the kernel seems to end early": (
        "kernel k(X: tensor<f32>[N]) {\n  let p = ctx.block.x\n  if X[p] > 0.0\n    X[p] = 0.0\n  }\n"
        "  for i in range(0, 4) {\n    X[p] += 1.0\n  }\n  X[p] = 2.0\n}\n"
        "kernel other(X: tensor<f32>[N]) {\n  X[0] = q\n}\n",
        ["PH001", "PH101"],
    ),
    "a brace that is missing behind an `else`": (
        "kernel k(X: tensor<f32>[N]) {\n  if X[0] > 0.0 {\n    X[1] = 0.0\n  } else\n"
        "    X[1] = 1.0\n  }\n  X[2] = 2.0\n}\n",
        ["PH001"],
    ),
    "a brace that is missing behind the head of a kernel": (
        "kernel k(X: tensor<f32>[N])\n  X[0] = 1.0\n  if X[0] > 0.0 {\n    X[1] = 0.0\n  }\n  X[2] = 2.0\n}\n",
        ["PH001"],
    ),
    "a brace too many": (
        "kernel k(X: tensor<f32>[N]) {\n  if X[0] > 0.0 {\n    X[1] = 0.0\n  }\n}\n}\n",
        ["PH001"],
    ),
    "a function that does not parse, and its caller": (
        "fn f(x: i64) -> i64 {\n  let y = = x\n  return x\n}\n"
        "@persistent\nkernel k(X: tensor<f32>[N]) {\n  X[f(0)] = f32(ctx.block.x)\n}\n",
        ["PH001"],
    ),
    "a suppression in a kernel that does not parse": (
        "@persistent\nkernel k(X: tensor<f32>[N]) {\n  let x = = 3\n"
        "  X[0] = f32(ctx.block.x)  // phobos: ignore[PH502] one block\n}\n",
        ["PH001"],
    ),
    "an unknown name that every block stores": (
        "@persistent\nkernel k(X: tensor<f32>[N]) {\n  let p = ctx.block.x\n  X[0] = foo + f32(p)\n}\n",
        ["PH101"],
    ),
    "an unknown name that is stored where blocks meet, through a variable": (
        "@persistent\nkernel k(X: tensor<f32>[N]) {\n  let p = ctx.block.x\n  let z = foo\n  X[p % 2] = z\n}\n",
        ["PH101", "PH210"],
    ),
    "a bad barrier tensor": (
        "@persistent\nkernel k(X: tensor<f32>[N], BAR: tensor<f32>[1, 1]) {\n  X[0] = 1.0\n  grid_barrier(BAR)\n}\n",
        ["PH206"],
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_one_mistake_one_diagnostic(name: str) -> None:
    text, expected = ONE[name]
    assert [d.code for d in findings("k.ph", text) if d.severity != "info"] == expected


def test_in_a_function_there_is_one_for_each_call_chain() -> None:
    text = (
        "fn sync(BAR: tensor<i32>[2]) {\n  grid_barrier(BAR)\n}\n"
        "@persistent\nkernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {\n  if ctx.block.x == 0 {\n    X[0] = 1.0\n"
        "    sync(BAR)\n  }\n  if ctx.block.x == 1 {\n    X[1] = 1.0\n    sync(BAR)\n  }\n  sync(BAR)\n}\n"
    )
    found = [d for d in findings("k.ph", text) if d.code == "PH203"]
    assert len(found) == 2
    assert {text[d.related[0].span.start : d.related[0].span.end] for d in found} == {"sync(BAR)"}
    assert len({d.related[0].span.start for d in found}) == 2


def test_behind_a_loop_in_which_every_block_returns_nothing_is_said() -> None:
    text = (
        "@persistent\nkernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {\n  let p = ctx.block.x\n"
        "  for r in range(0, 2) {\n    if p == 0 {\n      return\n    }\n    return\n  }\n"
        "  X[0] = f32(p)\n  grid_barrier(BAR)\n  for t in range(p * 8, N, ctx.blocks.x * 16) {\n"
        "    X[t :+ 8] = 1.0\n  }\n}\n"
    )
    assert [d.code for d in findings("k.ph", text) if d.severity != "info"] == []
    passed = text.replace("    return\n  }\n  X", "  }\n  X")
    assert {"PH204", "PH211"} <= {d.code for d in findings("k.ph", passed) if d.severity != "info"}


def test_the_call_that_leads_to_both_accesses_is_named_once() -> None:
    text = (
        "fn f(X: tensor<f32>[N], Y: tensor<f32>[M], p: i64) {\n  X[p] = f32(p)\n  Y[p] = X[0]\n}\n"
        "@persistent\nkernel k(X: tensor<f32>[N], Y: tensor<f32>[M]) {\n  f(X, Y, ctx.block.x)\n}\n"
    )
    (found,) = [d for d in findings("k.ph", text) if d.severity == "error"]
    assert [one.message for one in found.related] == ["while another writes here", "which is called here"]

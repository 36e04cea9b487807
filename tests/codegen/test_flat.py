"""`let f = flat(t)` is a view: what is read of it is what `t` holds then, however `t` has changed, on the host runner.

A view whose tile stays as it is costs what it always did: its text is the same, to the byte, as that of a copy.
"""

from __future__ import annotations

import pytest

from phobos.codegen import nvrtc
from phobos.lowering.decide import lower
from phobos.lowering.options import Options
from phobos.semantics import ir
from phobos.semantics.walking import statements_of
from tests.codegen import host
from tests.codegen.compare import Case, agree, emitted, unit_of

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

HEAD = """
@launch(64)
kernel k(X: tensor<f32>[4, 8], Y: tensor<f32>[4, 32], B: tensor<f32>[32, 8], I: tensor<i32>[1, 8], n: i32) {
  var t = X[0 :+ 4, 0 :+ 8]
"""


def kernel(body: str) -> str:
    return HEAD + body + "}\n"


def check(text: str) -> None:
    agree(text, {}, {"n": 3}, grid=(1, 1, 1), given={"I": [0, 31, 8, 9, 2, 30, 1, 16]}, tolerance=1e-4)


CHANGES = {
    "a cell": "t[1, 0] = 5.0",
    "cells": "t[1 :+ 2, 3 :+ 9] = 5.0",
    "the whole": "t = 5.0",
    "the whole with an operator": "t += 5.0",
    "in a branch": "if n > 2 { t[2, 2] = 8.0 } else { t = 1.0 }",
    "in a loop": "for j in range(0, n) { t[j, j] = 5.0 }",
}


@needs_compiler
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_view_shows_what_its_tile_has_become(change: str) -> None:
    """As a whole, as a cell, as cells, and through a view of its own."""
    check(
        kernel(f"""
  let f = flat(t)
  let v = f[0 :+ 1, 4 :+ 24]
  Y[0 :+ 1, 0 :+ 32] = f
  {change}
  Y[1 :+ 1, 0 :+ 32] = f * 2.0
  Y[2 :+ 1, 0 :+ 24] = v
  Y[3, 0] = f[0, 8] + f[0, 18]
  Y[3 :+ 1, 4 :+ 16] = f[0 :+ 1, 8 * n :+ 16]
""")
    )


@needs_compiler
def test_in_loops_every_round_sees_the_tile_anew() -> None:
    check(
        kernel("""
  let f = flat(t)
  for i in range(0, 4) {
    Y[i :+ 1, 0 :+ 32] = f
    t[i, 1] = 7.0
    let g = flat(t)
    for j in range(0, n) {
      if g[0, j] > 1.0 { t[j, 2] += 1.0 } else { t[1, 1] = f[0, 9] * 0.5 }
      Y[j :+ 1, 0 :+ 32] += f + g
    }
    t += f[0, i]
  }
  t[0, 0] = 0.0
  while f[0, 0] < 3.5 {
    t[0, 0] = f[0, 0] + 1.0
    t[1, 1] = f[0, 9] + 2.0
  }
  Y[3 :+ 1, 0 :+ 32] += f
""")
    )


@needs_compiler
@pytest.mark.parametrize(
    "loop",
    [
        "for i in range(0, 3) { Y[i :+ 1, 0 :+ 32] = f; t += 1.0 }",
        "for i in range(0, 3) { Y[i, 0] = f[0, 9]; t[1, 1] = f32(i) }",
        "for i in range(0, 2) { for j in range(0, 2) { Y[i + j :+ 1, 0 :+ 32] += f }; t = 5.0 }",
        "while t[0, 0] < 3.0 { Y[0 :+ 1, 0 :+ 32] += f; t[0, 0] += 1.0 }",
        "while f[0, 0] < 3.0 { t[0, 0] += 1.0 }; Y[0, 0] = t[0, 0]",
        "while f[0, 0] < 3.0 && f[0, 9] < 3.0 || f[0, 9] < 0.0 { t += 1.0 }; Y[0, 0] = t[0, 0]",
    ],
)
def test_a_round_sees_what_the_one_before_changed(loop: str) -> None:
    lines = loop.replace("{ ", "{\n").replace("; ", "\n").replace(" }", "\n}")
    check(kernel(f"  let f = flat(t)\n{lines}\n"))


@needs_compiler
def test_through_functions() -> None:
    check(
        """
fn changed(n: i32) -> tile<f32>[1, 32] {
  var s: tile<f32>[4, 8] = 1.0
  let f = flat(s)
  for i in range(0, n) { s[i, i] = f[0, i] + 5.0 }
  s += 1.0
  return f * 2.0
}
fn early(n: i32) -> tile<f32>[1, 32] {
  var s: tile<f32>[4, 8] = 1.0
  let f = flat(s)
  s[1, 1] = 4.0
  if n > 2 {
    s += 1.0
    return f
  }
  s = 3.0
  return f + 1.0
}
fn of(x: f32) -> f32 {
  if x > 2.0 { return x * 3.0 }
  return x
}
"""
        + kernel("""
  let f = flat(t)
  t[0, 0] = 3.0
  Y[0 :+ 1, 0 :+ 32] = changed(n)
  Y[1 :+ 1, 0 :+ 32] = early(n) + early(n - 1)
  t[0, 1] = of(f[0, 0])
  Y[2, 0] = of(f[0, 1])
""")
    )


@needs_compiler
def test_a_tile_that_changes_by_its_own_view_is_read_before_it_is_written() -> None:
    check(
        kernel("""
  let f = flat(t)
  t[0 :+ 1, 0 :+ 8] = f[0 :+ 1, 8 :+ 8]
  t[1 :+ 1, 0 :+ 8] = f[0 :+ 1, 5 :+ 8] + f[0 :+ 1, 1 :+ 8]
  t += rowsum(f)
  t[1 :+ 1, 0 :+ 32] = f
  Y[0 :+ 1, 0 :+ 32] = f
  var s = X[1 :+ 1, 0 :+ 8]
  let row = flat(s)
  s = row + s * 2.0
  s[0 :+ 1, 2 :+ 8] = row
  Y[1 :+ 1, 0 :+ 8] = row
  var one: tile<f32>[1, 1] = 3.0
  let only = flat(one)
  one[0, 0] = 4.0
  Y[2, 0] = only[0, 0]
  one += 1.0
  Y[2 :+ 1, 1 :+ 1] = only
""")
    )


@needs_compiler
def test_what_needs_other_threads_reads_it_anew() -> None:
    check(
        kernel("""
  let f = flat(t)
  t[2, 2] = 4.0
  Y[0 :+ 1, 0 :+ 32] = f * rowmax(f) + cumsum(f) + tril(f)
  t = 2.0 * t
  Y[1 :+ 1, 0 :+ 8] = gather(f, I[0 :+ 1, 0 :+ 8])
  Y[2 :+ 1, 0 :+ 8] = dot(f, B[0 :+ 32, 0 :+ 8])
  t[0 :+ 1, 0 :+ 8] += dot(f, B[0 :+ 32, 0 :+ 8])
  Y[3 :+ 1, 0 :+ 8] = dot(f, B[0 :+ 32, 0 :+ 8])
  t = t + rowmax(f)
  B[0 :+ 32, 0 :+ 1] = transpose(f)
""")
    )


@needs_compiler
def test_a_view_of_a_view_is_one_and_a_copy_is_none() -> None:
    """`var` copies, and so does a `let` of the view's value."""
    text = kernel("""
  let f = flat(t)
  let g = flat(f)
  let copied = f
  var own = flat(t)
  t[1, 3] = 8.0
  let h = flat(f)
  Y[0 :+ 1, 0 :+ 32] = g
  Y[1 :+ 1, 0 :+ 32] = copied
  Y[2 :+ 1, 0 :+ 32] = own
  t += 1.0
  Y[3 :+ 1, 0 :+ 32] = h
  B[0 :+ 32, 0 :+ 1] = transpose(flat(own))
""")
    check(text)
    check(kernel("  let f = flat(t)\n  t = 5.0\n  let h = flat(f)\n  Y[0 :+ 1, 0 :+ 32] = h + flat(f)\n"))
    case = Case(text, {}, {"n": 3}, grid=(1, 1, 1))
    x, y = case.arrays()["X"].reshape(-1), case.expected()["Y"]
    assert y[0, 11] == 8 and y[3, 11] == 9 and y[1, 11] == y[2, 11] == x[11]


UNCHANGED = {
    "never": ("", "Y[0 :+ 1, 0 :+ 32] = {f}"),
    "before": ("t[0, 0] = 3.0", "Y[0 :+ 1, 0 :+ 32] = {f}"),
    "after its last use": ("", "Y[0 :+ 1, 0 :+ 32] = {f} + {f}[0, 3]\n  t = 1.0"),
    "by its last use": ("", "t = t + rowsum({f}) + {f}[0, 3]"),
    "in another branch": ("", "if n > 2 {{ Y[0 :+ 1, 0 :+ 32] = {f} }} else {{ t = 3.0 }}"),
}


@pytest.mark.parametrize(("before", "after"), UNCHANGED.values(), ids=UNCHANGED.keys())
@pytest.mark.parametrize("loop", [False, True])
def test_a_view_of_a_tile_that_stays_is_a_copy_as_before(before: str, after: str, loop: bool) -> None:
    def text(word: str) -> str:
        body = f"  {before}\n  {word} f = flat(t)\n  {after.format(f='f')}\n"
        return kernel(f"  for i in range(0, n) {{\n{body}  }}\n" if loop else body)

    assert emitted(text("let")).text == emitted(text("var")).text


def test_a_view_as_a_whole_takes_no_memory_of_its_own() -> None:
    _, unit = unit_of(kernel("  let f = flat(t)\n  t += 1.0\n  Y[0 :+ 1, 0 :+ 32] = f\n"))
    lowered = lower(unit.program)
    assert not [s for s in statements_of(lowered.body) if isinstance(s, ir.Define) and s.variable.name == "f"]
    assert [thing.name for thing in lowered.shared.places if isinstance(thing, ir.Variable)] == ["t"]
    assert lowered.shared.bytes == 4 * 4 * 8


@pytest.mark.skipif(nvrtc.location() is None, reason="no NVRTC (pip install 'phobos-tools[nvrtc]')")
def test_compiles() -> None:
    body = "  let f = flat(t)\n  t += 1.0\n  Y[0 :+ 1, 0 :+ 32] = f\n  while f[0, 3] < 1.0 { t[0, 3] += 1.0 }\n"
    made = emitted(kernel(body), options=Options(arch="sm_90a"))
    assert nvrtc.compile_text(made.text, "test.cu", "sm_90a").ptx

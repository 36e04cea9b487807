"""Every way in which a condition can vary, in every place from which it can keep a block from a barrier.

A condition is the same for all blocks, differs by the block index or differs by data, and that is all that the
expectation is made of: with the construct it gives the rule, with the condition the severity. For some of the products
the reference runtime says whether blocks really part.
"""

from __future__ import annotations

import itertools

import pytest

from phobos.check import findings
from tests.truth.generator import Sample
from tests.truth.judge import judge

SAME, INDEX, DATA = "same", "error", "warning"

CONDITIONS: dict[str, tuple[str, str, str]] = {  # name: what comes before it, the condition, how it varies
    "the block": ("", "p == 0", INDEX),
    "the block's parity": ("", "p % 2 == 1", INDEX),
    "the block, negated": ("", "!(p != 1)", INDEX),
    "a name for it": ("let v = p + 1", "v == 1", INDEX),
    "0.1 spelling": ("let v = program_id(0)", "v == 0", INDEX),
    "what a function makes of it": ("let v = next(p)", "v == 1", INDEX),
    "set where not all come by": ("var v = 0\n  if p == 0 {\n    v = 1\n  }", "v == 1", INDEX),
    "counted in a loop as long as the block": ("var v = 0\n  for i in range(0, p) {\n    v += 1\n  }", "v == 0", INDEX),
    "left at the block's own round": (
        "var v = 0\n  while v < 4 {\n    if v == p {\n      break\n    }\n    v += 1\n  }", "v == 1", INDEX,
    ),
    "and": ("", "p == 0 && N > 1", INDEX),
    "or": ("", "p == 0 || N < 1", INDEX),
    "behind a tile": ("var t: tile<f32>[1, 2] = 0.0\n  t[0, 1] = f32(p)", "t[0, 1] > 0.5", INDEX),
    "a load at the block's place": ("", "X[p % N] > 0.5", DATA),
    "a load through a table": ("", "X[I[p % N] % N] > 0.5", DATA),
    "a load of what is written meanwhile": ("Y[p % N] = f32(p)", "Y[0] > 0.5", DATA),
    "an atomic's answer": ("let old = atomic_add(C, 0, 1)", "old == 0", DATA),
    "an extent": ("", "N > 3", SAME),
    "a parameter": ("", "flag == 1", SAME),
    "the grid": ("", "ctx.blocks.x > 1", SAME),
    "a constant": ("", "T == 2", SAME),
    "a load that nobody writes": ("", "X[0] > 0.5", SAME),
    "a load of what was written before": ("Y[p % N] = 1.0\n  grid_barrier(BAR)", "Y[0] > 0.5", SAME),
    "a name for a uniform value": ("let v = N * 2 + flag", "v > 6", SAME),
    "what a function makes of a uniform value": ("let v = next(N)", "v == 4", SAME),
    "set under a uniform condition": ("var v = 0\n  if N > 3 {\n    v = 1\n  }", "v == 1", SAME),
    "what every block is": ("", "p < ctx.blocks.x", SAME),
    "the block less itself": ("let v = p * 2 - p - p", "v == 0", SAME),
    "a row of one tile's sums": ("let s = rowsum(Z[0 :+ 1, 0 :+ 2])", "s[0, 0] > 0.5", SAME),
}  # fmt: skip

CONSTRUCTS: dict[str, tuple[str, str]] = {  # name: the body, the rule
    "then": ("if {c} {{\n    {b}\n  }}", "PH203"),
    "else": ("if {c} {{\n    Q[p] = 1.0\n  }} else {{\n    {b}\n  }}", "PH203"),
    "both arms": ("if {c} {{\n    {b}\n  }} else {{\n    {b}\n  }}", "PH215"),
    "return": ("if {c} {{\n    return\n  }}\n  {b}", "PH204"),
    "break": ("for r in range(0, 3) {{\n    if {c} {{\n      break\n    }}\n    {b}\n  }}", "PH204"),
    "continue": ("for r in range(0, 3) {{\n    if {c} {{\n      continue\n    }}\n    {b}\n  }}", "PH204"),
    "while": ("var k = 0\n  while {c} && k < 2 {{\n    {b}\n    k += 1\n  }}", "PH205"),
    "bounds": ("var n = 1\n  if {c} {{\n    n = 2\n  }}\n  for r in range(0, n) {{\n    {b}\n  }}", "PH205"),
    "and": ("if {c} && N > 0 {{\n    {b}\n  }}", "PH203"),
    "or": ("if N < 0 || {c} {{\n    {b}\n  }}", "PH203"),
    "nested": ("if N > 0 {{\n    if {c} {{\n      for r in range(0, 2) {{\n        {b}\n      }}\n    }}\n  }}", "PH203"),  # noqa: E501
    "argument": ("var n = 0\n  if {c} {{\n    n = 1\n  }}\n  unless(BAR, n)", "PH204"),
    "met again": ("if {c} {{\n    Q[p] = 1.0\n  }}\n  {b}", ""),
    "left a function": ("var n = 0\n  if {c} {{\n    n = 1\n  }}\n  idle(n)\n  {b}", ""),
    "left an inner loop": ("for r in range(0, 2) {{\n    if {c} {{\n      break\n    }}\n  }}\n  {b}", ""),
}

FUNCTIONS = """\
fn next(at: i64) -> i64 {
  return at + 1
}
fn sync(b: tensor<i32>[2]) {
  grid_barrier(b)
}
fn unless(b: tensor<i32>[2], n: i64) {
  if n == 1 {
    return
  }
  grid_barrier(b)
}
fn idle(n: i64) {
  if n == 1 {
    return
  }
}
"""
TENSORS = {
    "X": "f32>[N]", "Y": "f32>[N]", "Z": "f32>[1, N]", "I": "i32>[N]", "Q": "f32>[S]", "C": "i32>[1]", "BAR": "i32>[2]",
}  # fmt: skip
RULES = ("PH203", "PH204", "PH205", "PH215")
PRODUCTS = [*itertools.product(CONDITIONS, CONSTRUCTS)]


def kernel_of(condition: str, construct: str) -> str:
    """The text; where the barrier is called alternates between the place itself and a function."""
    before, test, _ = CONDITIONS[condition]
    call = "sync(BAR)" if (len(condition) + len(construct)) % 2 else "grid_barrier(BAR)"
    body = CONSTRUCTS[construct][0].format(c=test, b=call)
    parameters = ", ".join(f"{name}: tensor<{rest}" for name, rest in TENSORS.items())
    lines = ["let p = ctx.block.x", *([before] if before else []), body]
    head = f"@persistent\n@autotune(T in [2])\nkernel k({parameters}, flag: i32) {{\n  "
    return FUNCTIONS + head + "\n  ".join(lines) + "\n}\n"


def said(text: str) -> set[tuple[str, str]]:
    found = findings("k.ph", text)
    assert not [d for d in found if d.severity == "error" and d.code[2] in "014"], "it is a kernel"
    return {(d.code, d.severity) for d in found if d.code in RULES}


def wanted(condition: str, construct: str) -> set[tuple[str, str]]:
    varies, rule = CONDITIONS[condition][2], CONSTRUCTS[construct][1]
    return set() if varies == SAME or not rule else {(rule, varies)}


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_every_condition_in_this_construct(construct: str) -> None:
    wrong = {
        condition: (said(kernel_of(condition, construct)), wanted(condition, construct))
        for condition in CONDITIONS
        if said(kernel_of(condition, construct)) != wanted(condition, construct)
    }
    assert not wrong, "\n".join(f"{name}: said {told}, wanted {due}" for name, (told, due) in wrong.items())


def test_the_reference_runtime_agrees_about_some() -> None:
    """Blocks part where that is said; not where it is said of data alone, which may hold or not."""
    for condition, construct in PRODUCTS[::17]:
        if CONDITIONS[condition][2] == DATA:
            continue
        text = kernel_of(condition, construct)
        fills = {name: "random:seed=1" if "f32" in rest else "zeros" for name, rest in TENSORS.items()}
        sample = Sample(-1, text, "k", True, False, False, {"N": (2, 5), "S": (6,)}, {"flag": (0, 1)}, fills)
        parted = "deadlock" in judge(sample, [], (2, 3)).failures
        assert parted == bool(wanted(condition, construct)), (condition, construct)

"""Blocks that wait for a turn of their own come one after another, and are not said to where anything lets two in."""

from __future__ import annotations

import pytest

from phobos.check import findings
from phobos.check.configuration import DEFAULT

HEAD = """\
@persistent
kernel k(X: tensor<f32>[N], C: tensor<i32>[K], P: tensor<f32>[S], m: i32) {
  let p = ctx.block.x
"""
WAIT = "  while i64(atomic_add(C, 0, 0)) != p {\n  }\n"
WORK = "  X[0] = X[0] + X[p % N]\n"
NEXT = "  atomic_add(C, 0, 1)\n"


def said(text: str) -> set[str]:
    """The race rules that say something of `X`."""
    found = findings("k.ph", text, DEFAULT)
    assert not [d for d in found if d.code[2] in "014" and d.severity == "error"], "it is a kernel"
    return {d.code for d in found if d.code in ("PH501", "PH502", "PH503", "PH506", "PH507") and "`X`" in d.message}


IN_TURN = {
    "one turn each": WAIT + WORK + NEXT,
    "nobody gives it away": WAIT + WORK,
    "by more at a time": WAIT.replace("!= p", "!= 2 * p") + WORK + NEXT.replace("1)", "2)"),
    "the other way around": "  while p != i64(atomic_add(C, 0, 0)) {\n  }\n" + WORK + NEXT,
    "by an exchange": WAIT + WORK + "  let was = atomic_cas(C, 0, 0, 1)\n",
    "the last first": WAIT.replace("!= p", "!= ctx.blocks.x - 1 - p") + WORK + NEXT.replace("1)", "0 - 1)"),
    "in a loop": "  for r in range(0, 3) {\n"
    + WAIT.replace("!= p", "!= r * ctx.blocks.x + p") + WORK + NEXT + "  }\n",
    "some leave with their turn": WAIT + "  if m == 3 {\n    return\n  }\n" + WORK + NEXT,
    "a loop in a turn": WAIT + "  for r in range(0, m) {\n  " + WORK + "  }\n" + NEXT,
    "given away in both arms": WAIT + WORK + "  if m == 3 {\n" + NEXT + "  } else {\n" + NEXT + "  }\n",
}

TOGETHER = {
    "nobody waits": WORK + NEXT,
    "two wait for one number": WAIT.replace("!= p", "!= p / 2") + WORK + NEXT,
    "all wait for one number": WAIT.replace("!= p", "!= 0") + WORK + NEXT,
    "they wait for it to have come": WAIT.replace("!= p", "< p + 1") + WORK + NEXT,
    "given away before": WAIT + NEXT + WORK,
    "given away twice": WAIT + WORK + NEXT + NEXT,
    "given away in the first round": WAIT + "  for r in range(0, 2) {\n  " + WORK + NEXT + "  }\n",
    "given away by who has none": NEXT + WAIT + WORK + NEXT,
    "not all wait": "  if p > 1 {\n" + WAIT + "  }\n" + WORK + NEXT,
    "some wait for nothing": "  for r in range(0, m) {\n" + WAIT + "  }\n" + WORK + NEXT,
    "the cell is set": WAIT + WORK + "  C[0] = 7\n",
    "exchanged by who has none": "  let was = atomic_cas(C, 0, 0, 1)\n" + WAIT + WORK + NEXT,
    "each has its cell": WAIT.replace("C, 0,", "C, p % 2,") + WORK + NEXT.replace("C, 0,", "C, p % 2,"),
    "some rounds wait for one number": "  for r in range(0, 3) {\n"
    + WAIT.replace("!= p", "!= r + p") + WORK + NEXT + "  }\n",
    "the wait gives it away": WAIT.replace("C, 0, 0", "C, 0, 1") + WORK,
    "the wait may be left": WAIT.replace("{\n  }", "{\n    if m == 3 {\n      break\n    }\n  }") + WORK + NEXT,
}  # fmt: skip


@pytest.mark.parametrize("name", IN_TURN)
def test_turns_order_what_is_done_in_them(name: str) -> None:
    assert said(HEAD + IN_TURN[name] + "}\n") == set()


@pytest.mark.parametrize("name", TOGETHER)
def test_what_lets_two_in_orders_nothing(name: str) -> None:
    assert said(HEAD + TOGETHER[name] + "}\n")

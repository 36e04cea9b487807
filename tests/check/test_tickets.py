"""Blocks that go by the answers of a counter keep apart where no two have the same, and are not said to elsewhere."""

from __future__ import annotations

import pytest

from phobos.check import findings
from phobos.check.configuration import DEFAULT

HEAD = "@persistent\nkernel k(X: tensor<f32>[N], C: tensor<i32>[K], P: tensor<f32>[S], m: i32) {\n"
LOOP = """\
  var i = i64(atomic_add(C, 0, {step}))
  while i * 4 < N {{
    X[{place}] = X[{place}] * 2.0
    i = {next}
  }}
}}
"""
NEXT = "i64(atomic_add(C, 0, 1))"


def looped(place: str = "i * 4 :+ 4", step: str = "1", after: str = NEXT) -> str:
    return HEAD + LOOP.format(place=place, step=step, next=after)


def spoken_of(text: str) -> set[str]:
    """The race rules that say something of `X`."""
    found = findings("k.ph", text, DEFAULT)
    assert not [d for d in found if d.code[2] in "014" and d.severity == "error"], "it is a kernel"
    return {d.code for d in found if d.code in ("PH501", "PH502", "PH503", "PH506", "PH507") and "`X`" in d.message}


KEPT_APART = {
    "a loop over tickets": looped(),
    "a place farther on": looped("(i + 3) * 4 :+ 4"),
    "a counter that takes more at a time": looped("i :+ 4", "4", "i64(atomic_add(C, 0, 4))"),
    "more than the span holds": looped("i * 2 :+ 4", "3", "i64(atomic_add(C, 0, 2))"),
    "a ticket, and no loop": HEAD + "  let i = i64(atomic_add(C, 0, 1))\n  X[i :+ 1] = 1.0 + f32(i)\n}\n",
    "each variable its ticket": HEAD
    + """\
  let i = i64(atomic_add(C, 0, 1))
  X[i * 2 :+ 2] = X[i * 2 :+ 2] * 2.0
  let j = i64(atomic_add(C, 0, 1))
  X[j * 2 :+ 2] = X[j * 2 :+ 2] * 2.0
}
""",
    "one counter more on both ways": HEAD
    + """\
  var i = i64(atomic_add(C, 0, 1)) + 1
  if m > 3 {
    i = 1 + i64(atomic_add(C, 0, 2))
  }
  X[i :+ 1] = f32(ctx.block.x)
}
""",
    "who only looks at the counter does not move it": looped()[:-2]
    + "  while atomic_add(C, 0, 0) < 0 {\n  }\n}\n",
}

OPEN = {
    "the next one is walked to": looped(after="i + 1"),
    "spans longer than tickets are apart": looped("i * 4 :+ 5"),
    "nothing is added": looped(step="0", after="i64(atomic_add(C, 0, 0))"),
    "something is taken away": looped()[:-2] + "  let back = atomic_add(C, 0, 0 - 1)\n}\n",
    "nobody knows how much is added": looped(after="i64(atomic_add(C, 0, m))"),
    "the counter is stored to": looped()[:-2] + "  if ctx.block.x == 0 {\n    C[0] = 0\n  }\n}\n",
    "the counter is put back": looped()[:-2] + "  let was = atomic_cas(C, 0, 7, 0)\n}\n",
    "each block has a counter": HEAD
    + "  let i = i64(atomic_add(C, ctx.block.x % 2, 1))\n  X[i :+ 1] = f32(ctx.block.x)\n}\n",
    "some take less at a time": looped("i :+ 4", "4", "i64(atomic_add(C, 0, 1))"),
    "another variable takes less": HEAD
    + """\
  let i = i64(atomic_add(C, 0, 4))
  X[i :+ 4] = f32(ctx.block.x)
  let j = i64(atomic_add(C, 0, 1))
  P[ctx.block.x] = X[j]
}
""",
    "two counters": HEAD
    + """\
  let i = i64(atomic_add(C, 0, 1))
  X[i :+ 1] = f32(ctx.block.x)
  let j = i64(atomic_add(C, 1, 1))
  X[j :+ 1] = f32(ctx.block.x)
}
""",
    "one more on one way alone": HEAD
    + """\
  var i = i64(atomic_add(C, 0, 1)) + 1
  if m > 3 {
    i = i64(atomic_add(C, 0, 1))
  }
  X[i :+ 1] = f32(ctx.block.x)
}
""",
    "on one way no ticket": HEAD
    + """\
  var i = i64(atomic_add(C, 0, 1))
  if m > 3 {
    i = 0
  }
  X[i :+ 1] = f32(ctx.block.x)
}
""",
}


@pytest.mark.parametrize("name", KEPT_APART)
def test_tickets_keep_blocks_apart(name: str) -> None:
    assert spoken_of(KEPT_APART[name]) == set()


@pytest.mark.parametrize("name", OPEN)
def test_what_only_looks_like_a_ticket_does_not(name: str) -> None:
    assert spoken_of(OPEN[name])

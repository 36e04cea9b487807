"""The next round of a loop reads what another block wrote in this one.

## What it does
Reports a pair of accesses of two blocks that meet only around a loop, because no barrier stands between the
end of one round and the beginning of the next.

## Why it is bad
A fast block begins its next round while a slow one is still in the last. A barrier in the middle of the body
orders the two halves of a round, not the rounds.

## Example
```ph bad
@persistent
kernel smooth(A: tensor<f32>[N], B: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for s in range(0, 8) {
    for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
      B[t :+ 64] = A[t + 1 :+ 64] * 0.5
    }
    grid_barrier(BAR)
    for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
      A[t :+ 64] = B[t :+ 64]
    }
  }
}
```

Write instead:

```ph good
@persistent
kernel smooth(A: tensor<f32>[N], B: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for s in range(0, 8) {
    for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
      B[t :+ 64] = A[t + 1 :+ 64] * 0.5
    }
    grid_barrier(BAR)
    for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
      A[t :+ 64] = B[t :+ 64]
    }
    grid_barrier(BAR)
  }
}
```

## Fix
Put a second barrier at the end of the body.

## Limits
As for PH501.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.races import does, everywhere, other_site
from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic

RULE = Rule.of(__name__, "error", "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    for conflict, later, earlier, notes in everywhere(context, "loop"):
        name = later.access.base.name
        certain = conflict.certain
        yield RULE.at(
            later.access.span,
            f"no barrier separates this access to `{name}` from the next round of the loop"
            if certain
            else f"no barrier may separate this access to `{name}` from the next round of the loop",
            severity="error" if certain else "warning",
            label=f"a slow block {does(later)} here, in this round",
            related=other_site(later, earlier, f"while a fast one already {does(earlier)} here, in the next"),
            notes=notes,
            help="put a `grid_barrier` at the end of the loop's body",
        )

"""Both arms of a branch that blocks take differently hold a barrier.

## What it does
Reports barriers in both arms of an `if` whose condition differs between blocks.

## Why it is bad
They are different calls. All blocks must pass the same calls in the same order; a device that counts
arrivals only may let two meet, and then the next barrier is out of step.

## Example
```ph bad
@persistent
kernel arms(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  if p < 2 {
    X[p * 64 :+ 64] = X[p * 64 :+ 64] + 1.0
    grid_barrier(BAR)
  } else {
    Y[p * 64 :+ 64] = Y[p * 64 :+ 64] + 1.0
    grid_barrier(BAR)
  }
}
```

Write instead:

```ph good
@persistent
kernel arms(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
}
```

## Fix
Hoist: one barrier behind the `if` instead of one in each arm.

## Limits
As for PH203: what only data decides is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.divergence import chain, divergences
from phobos.check.rule import Context, Rule
from phobos.check.walk import unique
from phobos.diagnostic import Diagnostic, Fix

RULE = Rule.of(__name__, "error", "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    for divergence in divergences(context.program, "arms"):
        certain = divergence.certain
        others = unique((other.span, "the other blocks wait at this call instead") for other in divergence.others)
        yield RULE.at(
            divergence.barrier.span,
            "blocks wait at different grid barriers" if certain else "blocks may wait at different grid barriers",
            severity="error" if certain else "warning",
            label="not the same call as in the other arm",
            related=others + chain(divergence, "only some blocks take each arm"),
            help="hoist it: one barrier behind the `if` instead of one in each arm",
            fix=Fix("move one `grid_barrier` behind the `if` and remove those in its arms", "display-only", ()),
        )

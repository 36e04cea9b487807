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

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

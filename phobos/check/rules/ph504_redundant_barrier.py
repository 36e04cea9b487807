"""No block needs what another did before this barrier.

## What it does
Notes a barrier across which no two blocks touch one cell, one of them by a store.

## Why it is bad
A barrier costs about a microsecond and lets every block wait for the slowest.

## Example
```ph bad
@persistent
kernel twice(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] * 2.0
  }
}
```

Write instead:

```ph good
@persistent
kernel twice(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
  for t in range(ctx.block.x * 64, N - 64, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] * 2.0
  }
}
```

## Fix
Remove it, if nothing outside the kernel relies on it.

## Limits
Where the analysis gives up, nothing is said.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "info")

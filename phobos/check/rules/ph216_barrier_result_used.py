"""A grid barrier is used as if it had a value.

## What it does
Reports `grid_barrier(..)` as an operand or as the value of a variable.

## Why it is bad
It is a statement and gives nothing back.

## Example
```ph bad
@persistent
kernel step(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let _done = grid_barrier(BAR)
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
}
```

Write instead:

```ph good
@persistent
kernel step(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  grid_barrier(BAR)
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
}
```

## Fix
Let it stand alone.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

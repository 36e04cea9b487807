"""The search space of `@autotune` or `@cluster` cannot be meant so.

## What it does
Reports an empty list and a 0 for a constant that is a dimension, a length, a step or a divisor (errors), also where
`--set` or a launch sets it to less than 1; duplicates, and a space of more than 10 000 points (warnings).

## Why it is bad
There is nothing to choose from, or the kernel breaks at one of the values.

## Example
```ph bad
@autotune(TILE in [64, 128, 64])
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * TILE :+ TILE] = X[p * TILE :+ TILE] * 2.0
}
```

Write instead:

```ph good
@autotune(TILE in [64, 96, 128])
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * TILE :+ TILE] = X[p * TILE :+ TILE] * 2.0
}
```

## Fix
List each value once.

## Limits
Two values `lo, hi` stand for lo, 2 lo, 4 lo, ... and hi.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error", "warning")

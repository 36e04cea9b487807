"""The argument of `grid_barrier` is no barrier tensor.

## What it does
Reports an argument that is not the name of an i32 tensor parameter of shape `[n]` or `[n, 1]`, or that has
fewer than 2 elements.

## Why it is bad
The barrier counts arrivals in the first element and generations in the second. Anything else is overwritten
or never reaches the count.

## Example
```ph bad
@persistent
kernel small(X: tensor<f32>[N], BAR: tensor<i32>[1]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
}
```

Write instead:

```ph good
@persistent
kernel small(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
}
```

## Fix
Declare `BAR: tensor<i32>[2]` and pass its name.

## Limits
An extent that is known only at launch is checked there (PH208).
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

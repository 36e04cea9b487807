"""What `@aligned` promises is no positive whole number.

## What it does
Reports a tile of `@aligned` that is not a positive integer literal or constant, a promise without a name,
and an empty list.

## Why it is bad
An extent is a whole number of tiles of a positive size, or the promise means nothing.

## Example
```ph bad
@aligned(N = 0)
kernel double(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

Write instead:

```ph good
@aligned(N = 64)
kernel double(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
Write `@aligned(N = 64)` with a literal or an `@autotune` constant.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

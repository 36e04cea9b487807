"""A whole tensor stands where a value is needed.

## What it does
Reports a tensor's bare name in an expression.

## Why it is bad
A tensor is memory of any size; only a slice or a point of it is a value.

## Example
```ph bad
kernel copy(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let p = ctx.block.x
  Y[p * 64 :+ 64] = X * 2.0
}
```

Write instead:

```ph good
kernel copy(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let p = ctx.block.x
  Y[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
Subscript it, or name it where a tensor is asked for: `grid_barrier`, `atomic_add`, `extent`, a function's
tensor parameter.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

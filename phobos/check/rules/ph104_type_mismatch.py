"""Operands, a store, a condition or a bound have types that do not go together.

## What it does
Reports an integer and a float in one scalar operation, a float stored to integers, a condition that is no
bool, a loop bound or subscript that is no index, and a value that its annotation does not take.

## Why it is bad
No conversion that could lose something is made silently.

## Example
```ph bad
kernel scale(X: tensor<f32>[N], n: i32) {
  let p = ctx.block.x
  let factor = 1.0 + n
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * factor
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[N], n: i32) {
  let p = ctx.block.x
  let factor = 1.0 + f32(n)
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * factor
}
```

## Fix
Convert: `f32(n)`, `i64(x)`, `i32(x)`.

## Limits
An operand already in error is not judged.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

"""A number is malformed or out of range.

## What it does
Reports an integer that does not fit 64 bits, a letter glued to a number, and a float that is none.

## Why it is bad
There is no value that could stand for it.

## Example
```ph bad
kernel fill(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = 2.0f
}
```

Write instead:

```ph good
kernel fill(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = 2.0
}
```

## Fix
Integers are `64`, `0x40` or `1_024`; floats are `2.0` or `1e-5` and take no suffix.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

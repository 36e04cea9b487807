"""`@aligned` names one dimension twice.

## What it does
Reports a repeated key, and two promises that together mean their least common multiple.

## Why it is bad
Both count. Often one of them was meant for another dimension.

## Example
```ph bad
@aligned(N = 64)
@aligned(N = 48)
kernel double(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 192 :+ 192] = X[p * 192 :+ 192] * 2.0
}
```

Write instead:

```ph good
@aligned(N = 192)
kernel double(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 192 :+ 192] = X[p * 192 :+ 192] * 2.0
}
```

## Fix
Keep one promise for each dimension.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error", "warning")

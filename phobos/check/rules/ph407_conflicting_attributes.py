"""Two attributes of a kernel say the same thing twice, or exclude each other.

## What it does
Reports a repeated attribute (those that may be repeated excepted), and pairs that cannot both hold.

## Why it is bad
Only one of them counts.

## Example
```ph bad
@launch(128)
@launch(256)
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

Write instead:

```ph good
@launch(256)
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
Keep one.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

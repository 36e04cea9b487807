"""A bracket or brace is opened and never closed, or closed and never opened.

## What it does
Points at both ends: the bracket that stays open, and the place where its partner was missed.

## Why it is bad
Everything after it belongs to something else than it seems to.

## Example
```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * (2.0 + 1.0
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * (2.0 + 1.0)
}
```

## Fix
Close the bracket, or take away the one that is too many.

## Limits
Where indentation and braces disagree, the brace that is blamed may be one line off.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

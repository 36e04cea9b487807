"""An attribute that nobody knows is ignored.

## What it does
Reports an attribute that is not in the language, and the nearest one that is.

## Why it is bad
A mistyped attribute looks as if it did something. `@persistant` leaves the kernel an ordinary one.

## Example
```ph bad
@lunch(128)
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

Write instead:

```ph good
@launch(128)
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
Write the attribute's name.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

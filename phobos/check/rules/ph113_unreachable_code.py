"""Code stands where nothing ever comes.

## What it does
Reports statements after a `return`, `break` or `continue`, and an arm of an `if` whose condition is always
or never true.

## Why it is bad
It does nothing, though it looks as if it did.

## Example
```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  return
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
Remove it, or mend the jump or condition before it.

## Limits
A condition on an `@autotune` constant is never taken as constant: other values of it may be tried.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

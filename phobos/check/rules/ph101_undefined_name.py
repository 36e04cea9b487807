"""A name is used that nothing defines.

## What it does
Reports a name that is no parameter, dimension, constant or variable of the scopes around it, and names the
nearest one that is.

## Why it is bad
It has no value. A mistyped extent or constant is the usual cause.

## Example
```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[q * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
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
Write the name that was meant, or define it before its use. A variable ends with the block that defines it.

## Limits
What is computed from the unknown name is not judged any further.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

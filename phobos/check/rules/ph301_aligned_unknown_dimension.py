"""`@aligned` names something that is no dimension of the kernel.

## What it does
Reports a key of `@aligned` that no tensor parameter uses as a dimension, and names the nearest one.

## Why it is bad
The promise is about nothing. A mistyped name leaves every mask where it was, without a word.

## Example
```ph bad
@aligned(K = 64)
kernel double(X: tensor<f32>[M, N]) {
  let p = ctx.block.x
  X[p :+ 1, 0 :+ 64] = X[p :+ 1, 0 :+ 64] * 2.0
}
```

Write instead:

```ph good
@aligned(N = 64)
kernel double(X: tensor<f32>[M, N]) {
  let p = ctx.block.x
  X[p :+ 1, 0 :+ 64] = X[p :+ 1, 0 :+ 64] * 2.0
}
```

## Fix
Write the dimension's name as the tensor's type has it.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

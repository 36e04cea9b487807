"""Several blocks store different values to one place.

## What it does
Reports a store whose place does not depend on the block index, while its value does.

## Why it is bad
The block that comes last wins, and which one that is nobody knows. Often `p * T` is missing in the
subscript.

## Example
```ph bad
kernel clash(X: tensor<f32>[N], OUT: tensor<f32>[64]) {
  let p = ctx.block.x
  OUT[0 :+ 64] = X[p * 64 :+ 64]
}
```

Write instead:

```ph good
kernel copy(X: tensor<f32>[N], OUT: tensor<f32>[N]) {
  let p = ctx.block.x
  OUT[p * 64 :+ 64] = X[p * 64 :+ 64]
}
```

## Fix
Store to the block's own place, add up with `atomic_add`, or let one block store: `if ctx.block.x == 0`.

## Limits
A value that is the same for all blocks may be stored by all of them.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

"""`@launch` asks for what no card can do.

## What it does
Reports a number of threads that is no multiple of 32 from 32 to 1024, a register limit outside 16 to 255, and
a wrong number of arguments.

## Why it is bad
Blocks are made of warps of 32 threads. The launch would be refused.

## Example
```ph bad
@launch(100)
kernel warp(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 32 :+ 32] = X[p * 32 :+ 32] + 1.0
}
```

Write instead:

```ph good
@launch(128)
kernel warp(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 32 :+ 32] = X[p * 32 :+ 32] + 1.0
}
```

## Fix
Take 128, 256 or 512.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

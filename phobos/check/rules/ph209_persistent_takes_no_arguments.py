"""`@persistent` is given arguments.

## What it does
Reports `@persistent(...)` with anything between the brackets.

## Why it is bad
The number of blocks is not written in the kernel: the launcher asks the card how many fit. A number here
would look as if it decided, and does not.

## Example
```ph bad
@persistent(48)
kernel step(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
}
```

Write instead:

```ph good
@persistent
kernel step(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
}
```

## Fix
`--fix` removes the arguments. To fix the grid for one launch, pass `grid=` to the launcher.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

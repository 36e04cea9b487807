"""The kernel is right only if two of its tensors do not overlap.

## What it does
Notes a pair of tensor parameters, one of them written, that different blocks touch in one phase.

## Why it is bad
Given one array twice, or two slices that overlap, blocks would race. The launcher refuses such a call.

## Example
```ph bad
@persistent
kernel neighbour(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    Y[t :+ 64] = X[t + 1 :+ 64]
  }
}
```

Write instead:

```ph good
@persistent
kernel double(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] * 2.0
  }
}
```

## Fix
Nothing, unless the kernel is to run in place.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "info")

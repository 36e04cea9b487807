"""Two tiles have shapes that cannot be combined.

## What it does
Reports broadcasting, stores, `dot` and calls whose shapes disagree, and shows both.

## Why it is bad
Each axis must be equal, or 1 on one side. Ranks must be equal: nothing is padded on the left.

## Example
```ph bad
kernel add(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let p = ctx.block.x
  Y[p * 64 :+ 64] = X[p * 64 :+ 64] + X[p * 64 :+ 32]
}
```

Write instead:

```ph good
kernel add(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let p = ctx.block.x
  Y[p * 64 :+ 64] = X[p * 64 :+ 64] + X[p * 64 :+ 64]
}
```

## Fix
Make the lengths equal, or make one of them 1.

## Limits
Lengths that are known only at launch are compared there.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

"""A reduction over a span that can run past the end counts the zeros that stand for missing cells.

## What it does
Reports `rowmax` and `rowargmax` over a span that may be ragged, and a sum of something that is not 0 where
the span is filled, such as `exp(x)`, `x + 1.0` or `1.0 / x`.

## Why it is bad
Cells past an extent read as 0. A maximum of negative numbers becomes 0, and `exp(0)` is 1.

## Example
```ph bad
kernel top(X: tensor<f32>[M, N], Y: tensor<f32>[M, 1]) {
  let p = ctx.block.x
  Y[p :+ 1, 0 :+ 1] = rowmax(X[p :+ 1, 0 :+ 64])
}
```

Write instead:

```ph good
@aligned(N = 64)
kernel top(X: tensor<f32>[M, N], Y: tensor<f32>[M, 1]) {
  let p = ctx.block.x
  var best = rowmax(X[p :+ 1, 0 :+ 64])
  for t in range(64, N, 64) {
    best = tmax(best, rowmax(X[p :+ 1, t :+ 64]))
  }
  Y[p :+ 1, 0 :+ 1] = best
}
```

## Fix
Put the missing cells right with `where`, promise whole tiles with `@aligned`, or take away what they added.

## Limits
A correction behind the reduction, such as subtracting the number of filled cells, is not seen.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

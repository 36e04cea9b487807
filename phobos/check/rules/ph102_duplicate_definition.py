"""Two things in one place have one name.

## What it does
Reports two kernels, functions or parameters of one name (error), and a local that is defined again in the
same scope (warning).

## Why it is bad
Only one of the two can be meant by the name; for kernels and functions it is the first.

## Example
```ph bad
kernel add(X: tensor<f32>[N], X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] + 1.0
}
```

Write instead:

```ph good
kernel add(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = Y[p * 64 :+ 64] + 1.0
}
```

## Fix
Rename one of them.

## Limits
A name of an inner block may hide one of an outer block; that is no finding.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error", "warning")

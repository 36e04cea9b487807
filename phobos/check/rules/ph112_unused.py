"""Something is defined and never used.

## What it does
Reports a variable, parameter, constant or function that nothing reads.

## Why it is bad
It is left over, or something else was meant where it should stand.

## Example
```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  let base = p * 64
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  let base = p * 64
  X[base :+ 64] = X[base :+ 64] * 2.0
}
```

## Fix
Remove it, or begin its name with `_`.

## Limits
Loop variables are never reported, nor anything in a kernel with a syntax error.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

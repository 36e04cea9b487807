"""A statement computes a value and drops it.

## What it does
Reports an expression statement that is neither a call with an effect nor a call of a function.

## Why it is bad
Almost always it is the second half of a statement that a line end cut in two: `let a = p * 32` and, on the
next line, `- 8` are two statements, and `a` is not what was meant.

## Example
```ph bad
kernel shift(X: tensor<f32>[N]) {
  let p = ctx.block.x
  let a = p * 32
  - 8
  X[a :+ 32] = X[a :+ 32] + 1.0
}
```

Write instead:

```ph good
kernel shift(X: tensor<f32>[N]) {
  let p = ctx.block.x
  let a = p * 32 -
    8
  X[a :+ 32] = X[a :+ 32] + 1.0
}
```

## Fix
Break the line after the operator, use the value, or delete the statement.

## Limits
A call of a function is taken to have an effect, even where it has none.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

"""`@pipeline` asks for a double-buffered loop, and there is none.

## What it does
Reports a kernel with `@pipeline` in which no loop loads tiles for a `dot`, with the reasons.

## Why it is bad
The attribute is an assertion: it is written so that a kernel that lost its pipeline does not pass unnoticed.

## Example
```ph bad
@pipeline
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
Remove the attribute, or load the operands of a `dot` in a loop.

## Limits
What the emitter of this project does is reported; another compiler may decide otherwise.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

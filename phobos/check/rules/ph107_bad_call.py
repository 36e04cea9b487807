"""A call does not fit what it calls, or calls something unknown.

## What it does
Reports a wrong number or kind of arguments, recursion, and a callee that nobody knows: an error when it is
one letter away from a known name, a warning otherwise.

## Why it is bad
Functions are inlined, so a recursion has no end; an unknown callee cannot be run.

## Example
```ph bad
kernel act(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = exp(X[p * 64 :+ 64], 2.0)
}
```

Write instead:

```ph good
kernel act(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = exp(X[p * 64 :+ 64])
}
```

## Fix
Call it as its signature says (hover shows it), or add the name to `known-functions` in the configuration.

## Limits
Names of later language levels are known by name only; see PH114.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error", "warning")

"""A suppression does not say which rule it is about.

## What it does
Reports `// phobos: ignore` without a list of codes or names.

## Why it is bad
It would silence everything, what nobody has thought of yet included. It silences nothing.

## Example
```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0  // phobos: ignore
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
Name the rules, and the reason: `// phobos: ignore[PH501] the host zeroes it`.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

"""A comment silences a rule that says nothing there.

## What it does
Reports a code in `// phobos: ignore[..]` or `ignore-file[..]` that silenced no finding.

## Why it is bad
What it was for is gone. Left in place it silences the next finding unseen.

## Example
```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0  // phobos: ignore[PH501] blocks keep to their tiles
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
`--fix` removes it.

## Limits
Rules that are not selected are not counted as unused.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

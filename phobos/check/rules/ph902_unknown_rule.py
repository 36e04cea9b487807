"""A suppression or the configuration names a rule that does not exist, or a comment for Phobos says nothing.

## What it does
Reports a code or name that no rule has, and the nearest one. Reports a comment `// phobos: ..` that goes on with a
word that means nothing there (`ignroe[PH203]`), and one that is not read because its beginning is not exactly
`// phobos:` (`// Phobos ignore[PH203]`).

## Why it is bad
It silences, assumes or selects nothing, and looks as if it did.

## Example
```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0  // phobos: ignore[PH999]
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  let scale = 3.0  // phobos: ignroe[PH112] the next step needs it
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  let scale = 3.0  // phobos: ignore[PH112] the next step needs it
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
Write a code or name that `phobos rule --all` lists. A comment for Phobos is `ignore[..]`, `ignore-file[..]` or
`assume uniform(x)` after `// phobos:`.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

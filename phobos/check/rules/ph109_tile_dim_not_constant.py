"""A tile's size is not known when the kernel is compiled.

## What it does
Reports a dimension of a `tile<...>[...]` that is neither a literal nor a constant of `@autotune` or
`@cluster`.

## Why it is bad
Tiles live in registers and shared memory, and both are laid out by the compiler.

## Example
```ph bad
kernel rows(X: tensor<f32>[N]) {
  var t: tile<f32>[N] = 0.0
  X[0 :+ 64] = t
}
```

Write instead:

```ph good
@autotune(TILE in [64])
kernel rows(X: tensor<f32>[N]) {
  var t: tile<f32>[TILE] = 0.0
  X[0 :+ TILE] = t
}
```

## Fix
Take a constant and walk the extent in steps of it.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

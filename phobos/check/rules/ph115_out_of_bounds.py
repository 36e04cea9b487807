"""An access lies outside a tensor or tile whose size is known.

## What it does
Reports a point outside a static extent, and a slice that lies wholly outside one.

## Why it is bad
A point access has no mask: it reads or destroys other memory. A slice wholly outside reads only zeros and
stores nothing.

## Example
```ph bad
kernel last(X: tensor<f32>[64], Y: tensor<f32>[1]) {
  Y[0] = X[64]
}
```

Write instead:

```ph good
kernel last(X: tensor<f32>[64], Y: tensor<f32>[1]) {
  Y[0] = X[63]
}
```

## Fix
Indices run from 0 to the extent less 1.

## Limits
A slice that only runs past the end is masked and no finding. Extents known at launch only are checked by
the reference runtime and by `--debug` builds.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

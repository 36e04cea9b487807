"""A subscript does not fit what it stands on.

## What it does
Reports a wrong number of subscripts, points mixed with slices, a subscript that is no integer, and a
length that is known only at launch where the tile must have a fixed size.

## Why it is bad
One subscript names the cells of one dimension, and a tile lives in storage whose size is fixed when the
kernel is compiled.

## Example
```ph bad
kernel scale(X: tensor<f32>[M, N]) {
  let p = ctx.block.x
  X[p, 0 :+ 64] = X[p, 0 :+ 64] * 2.0
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[M, N]) {
  let p = ctx.block.x
  X[p :+ 1, 0 :+ 64] = X[p :+ 1, 0 :+ 64] * 2.0
}
```

## Fix
Write one subscript for each dimension, and `i :+ 1` for a point among slices.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

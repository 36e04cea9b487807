"""The right side reads cells of the destination in another order than they are written.

## What it does
Reports a store whose value reads the same tensor or tile at other cells that overlap the ones stored.

## Why it is bad
The right side is evaluated whole before anything is stored, which takes a copy; where elements are updated
in place, as in most languages, the result would differ. Often an index is off by one.

## Example
```ph bad
kernel shift(X: tensor<f32>[65]) {
  X[0 :+ 64] = X[1 :+ 64]
}
```

Write instead:

```ph good
kernel shift(X: tensor<f32>[65], Y: tensor<f32>[65]) {
  Y[0 :+ 64] = X[1 :+ 64]
}
```

## Fix
Store to another tensor, or copy first: `var t = X[1 :+ 64]`.

## Limits
Overlap is reported only where it is proved.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

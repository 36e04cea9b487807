"""A tile is read before anything was written to it.

## What it does
Reports the read of a `var t: tile<..>[..]` without a value: an error where no path writes it before, a
warning where some path does not.

## Why it is bad
It holds whatever was in those registers. The reference runtime stops with a fault.

## Example
```ph bad
kernel sum(X: tensor<f32>[1, N], Y: tensor<f32>[1, 1]) {
  var total: tile<f32>[1, 1]
  total += rowsum(X[0 :+ 1, 0 :+ 64])
  Y[0 :+ 1, 0 :+ 1] = total
}
```

Write instead:

```ph good
kernel sum(X: tensor<f32>[1, N], Y: tensor<f32>[1, 1]) {
  var total: tile<f32>[1, 1] = 0.0
  total += rowsum(X[0 :+ 1, 0 :+ 64])
  Y[0 :+ 1, 0 :+ 1] = total
}
```

## Fix
Give it a value where it is declared.

## Limits
A tile that is written in parts counts as written after the first part.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error", "warning")

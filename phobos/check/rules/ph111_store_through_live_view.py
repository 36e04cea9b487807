"""A tensor is stored to while a view of it is still in use.

## What it does
Reports a store to a tensor between a `let v = A[..]` and the last use of `v`.

## Why it is bad
A view holds no elements, it reads them at each use: after the store it shows the new ones.

## Example
```ph bad
kernel swap(A: tensor<f32>[N], B: tensor<f32>[N]) {
  let p = ctx.block.x
  let old = A[p * 64 :+ 64]
  A[p * 64 :+ 64] = B[p * 64 :+ 64]
  B[p * 64 :+ 64] = old
}
```

Write instead:

```ph good
kernel swap(A: tensor<f32>[N], B: tensor<f32>[N]) {
  let p = ctx.block.x
  var old = A[p * 64 :+ 64]
  A[p * 64 :+ 64] = B[p * 64 :+ 64]
  B[p * 64 :+ 64] = old
}
```

## Fix
Make it a `var`: that copies.

## Limits
Only stores to the same tensor parameter are seen, not two parameters that share memory.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

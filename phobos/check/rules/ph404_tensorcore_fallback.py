"""`@tensorcore` has no effect here.

## What it does
Reports a kernel whose `dot` cannot run on tensor cores, with the reason and the nearest shape that would.

## Why it is bad
The product runs many times slower than what was asked for, without a word.

## Example
```ph bad
@tensorcore
kernel mm(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  let p = ctx.block.x
  var acc: tile<f32>[6, 6] = 0.0
  for k in range(0, K, 6) {
    acc += dot(A[p * 6 :+ 6, k :+ 6], B[k :+ 6, 0 :+ 6])
  }
  C[p * 6 :+ 6, 0 :+ 6] = acc
}
```

Write instead:

```ph good
@tensorcore
kernel mm(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  let p = ctx.block.x
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 64) {
    acc += dot(A[p * 64 :+ 64, k :+ 64], B[k :+ 64, 0 :+ 64])
  }
  C[p * 64 :+ 64, 0 :+ 64] = acc
}
```

## Fix
Take the shape that the message names.

## Limits
What the emitter of this project does is reported; another compiler may decide otherwise.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

"""The tiles that threads must share take more shared memory than a block may have.

## What it does
Counts the declared tiles that other threads must read, that is operands of `dot`, `dot_t`, `transpose`, `cumsum`,
`gather`, `flat`, and subscripted tiles, while they are live. Reports more than 48 KiB without `@dynshared`, and
more than a target's limit with it. A note where only other constants of the search space pass the limit.

## Why it is bad
The kernel does not compile, or does not launch.

## Example
```ph bad
kernel big(A: tensor<f32>[M, N], B: tensor<f32>[N, M]) {
  var a: tile<f32>[128, 128] = 0.0
  let p = ctx.block.x
  a = A[p * 128 :+ 128, 0 :+ 128]
  B[0 :+ 128, p * 128 :+ 128] = transpose(a)
}
```

Write instead:

```ph good
kernel small(A: tensor<f32>[M, N], B: tensor<f32>[N, M]) {
  var a: tile<f32>[64, 64] = 0.0
  let p = ctx.block.x
  a = A[p * 64 :+ 64, 0 :+ 64]
  B[0 :+ 64, p * 64 :+ 64] = transpose(a)
}
```

## Fix
Use smaller tiles, or `@dynshared`, which allows as much as the device has.

## Limits
Tiles used only elementwise, in row reductions or as the target of `+= dot` stay in registers and do not
count.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

"""This is known by name, but the runtimes cannot execute it.

## What it does
Reports per-thread code (`ctx.thread`, `ctx.warp`, `ctx.lane`), quantised built-ins, and names of later
language levels, at most once each.

## Why it is bad
The checker judges what it can of such a kernel; `phobos run` refuses it by that name.

## Example
```ph bad
kernel act(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = gelu(X[p * 64 :+ 64])
}
```

Write instead:

```ph good
fn squash(x: f32) -> f32 {
  return x / (1.0 + exp(0.0 - x))
}

kernel act(X: tensor<f32>[N]) {
  let p = ctx.block.x
  for i in range(p * 64, p * 64 + 64) {
    if i < N {
      X[i] = squash(X[i])
    }
  }
}
```

## Fix
Nothing needs to be mended for the checker. To run the kernel here, write it with built-ins of levels 0.1
and 0.2.

## Limits
The result of such a call is taken to be anything, so mistakes in its use are not seen.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "info")

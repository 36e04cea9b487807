"""A block waits for another in a way that may never end.

## What it does
Reports a `while` that waits for another block by a plain load, or by an atomic in a kernel that is not
`@persistent` (warnings); a note where it waits by an atomic in a `@persistent` kernel and no proof was found that
another block ends the wait.

## Why it is bad
A plain load may be kept in a register and never see the change. In an ordinary grid the other block may not
be running, and cannot start before this one ends.

## Example
```ph bad
@persistent
kernel chain(X: tensor<f32>[N], F: tensor<i32>[1]) {
  if ctx.block.x == 0 {
    X[0 :+ 64] = 1.0
    atomic_add(F, 0, 1)
  } else {
    while F[0] == 0 {
    }
  }
}
```

Write instead:

```ph good
@persistent
kernel chain(X: tensor<f32>[N], F: tensor<i32>[1]) {
  if ctx.block.x == 0 {
    X[0 :+ 64] = 1.0
    atomic_add(F, 0, 1)
  } else {
    while atomic_add(F, 0, 0) == 0 {
    }
  }
}
```

## Fix
Wait by `atomic_add(F, i, 0)`, in a `@persistent` kernel.

## Limits
That the awaited block comes to its atomic is not proved.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "warning")

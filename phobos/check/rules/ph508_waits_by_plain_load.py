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
kernel chain(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  if ctx.block.x == 0 {
    X[0 :+ 64] = 1.0
  }
  grid_barrier(BAR)
}
```

## Fix
Wait for all blocks by `grid_barrier`, or for one by `atomic_add(F, i, 0)` in a `@persistent` kernel.

## Limits
That the awaited block comes to its atomic is not proved.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import called_from
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics.waits import waits_of

RULE = Rule.of(__name__, "warning", "info")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    for wait in waits_of(program):
        loop = (Related(wait.loop.keyword, "this loop waits"), *called_from(wait.calls))
        if wait.how == "load":
            yield RULE.at(
                wait.span,
                f"waits for another block by a plain load of `{wait.tensor.name}`",
                label="may be read once and kept in a register for ever",
                related=loop,
                help=f"read it by `atomic_add({wait.tensor.name}, .., 0)`",
            )
        elif not program.is_persistent:
            yield RULE.at(
                wait.span,
                f"waits for another block, but `{program.name}` is not `@persistent`",
                label="that block may not be able to start before this one ends",
                related=loop,
                help="make the kernel `@persistent`, so that all its blocks run at once",
            )
        else:
            yield RULE.at(
                wait.span,
                "waits for another block; that it comes to its atomic was not proved",
                severity="info",
                label=f"until another block changes `{wait.tensor.name}`",
                related=loop,
                help="`phobos run --device cpu` shows a wait that never ends",
            )

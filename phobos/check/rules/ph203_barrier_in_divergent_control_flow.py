"""A grid barrier stands under an `if` that only some blocks take.

## What it does
Reports a barrier under a condition that differs between blocks, directly or in a function, and shows the
branch and what makes it vary: the block index, data that other blocks write, the result of an atomic.

## Why it is bad
The blocks that come to the barrier wait for all others. Those that skipped it never come: the card stops
without a message.

## Example
```ph bad
@persistent
kernel leader(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  if p == 0 {
    X[0 :+ 32] = X[0 :+ 32] + 1.0
    grid_barrier(BAR)
  }
}
```

Write instead:

```ph good
@persistent
kernel leader(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  if p == 0 {
    X[0 :+ 32] = X[0 :+ 32] + 1.0
  }
  grid_barrier(BAR)
}
```

## Fix
Move the barrier out of the `if`, and leave the work inside.

## Limits
An error where index arithmetic tells two blocks apart, a warning where only loaded data or the order of
atomics may. What the analysis cannot see can be said by `// phobos: assume uniform(x)`; the reference runtime
checks it.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.divergence import chain, divergences
from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic

RULE = Rule.of(__name__, "error", "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    for divergence in divergences(context.program, "branch"):
        certain = divergence.certain
        yield RULE.at(
            divergence.barrier.span,
            "only some blocks reach this grid barrier" if certain else "some blocks may not reach this grid barrier",
            severity="error" if certain else "warning",
            label="the blocks that come here wait for ever for the others",
            related=chain(divergence, "only some blocks take this branch" if certain else "blocks may differ here"),
            help="move the barrier out of the branch and leave the work inside",
        )

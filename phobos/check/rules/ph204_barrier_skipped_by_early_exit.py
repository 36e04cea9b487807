"""Some blocks leave before they come to a grid barrier.

## What it does
Reports a barrier that blocks may never reach because of a `return`, `break` or `continue` before it, in
this round of a loop or an earlier one. A `return` in a function leaves the function only.

## Why it is bad
The blocks that stay wait for those that have left: the kernel hangs.

## Example
```ph bad
@persistent
kernel guard(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let base = ctx.block.x * 256
  if base >= N {
    return
  }
  for t in range(base, N, ctx.blocks.x * 256) {
    X[t :+ 256] = X[t :+ 256] * 0.5
  }
  grid_barrier(BAR)
}
```

Write instead:

```ph good
@persistent
kernel guard(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let base = ctx.block.x * 256
  for t in range(base, N, ctx.blocks.x * 256) {
    X[t :+ 256] = X[t :+ 256] * 0.5
  }
  grid_barrier(BAR)
}
```

## Fix
Put the work under the condition instead of leaving: a block without work must still come to the barrier.

## Limits
As for PH203: what only data decides is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.divergence import chain, divergences
from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic

RULE = Rule.of(__name__, "error", "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    for divergence in divergences(context.program, "exit"):
        certain = divergence.certain
        yield RULE.at(
            divergence.barrier.span,
            "some blocks leave before they reach this grid barrier"
            if certain
            else "some blocks may leave before they reach this grid barrier",
            severity="error" if certain else "warning",
            label="waits for ever for the blocks that left",
            related=chain(divergence, "some blocks leave here" if certain else "blocks may leave here"),
            help="put the work under the condition instead of leaving: a block without work must still come here",
        )

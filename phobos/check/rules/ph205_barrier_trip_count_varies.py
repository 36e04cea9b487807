"""A grid barrier stands in a loop that some blocks go round more often than others.

## What it does
Reports a barrier in a `for` whose number of rounds, or a `while` whose condition, differs between blocks.
Bounds that vary together, as in `range(p, p + 8)`, do not.

## Why it is bad
In the last rounds of the busier blocks the others are gone, and those that wait wait for ever. With as many
tiles as blocks all goes well, so that it is found late.

## Example
```ph bad
@persistent
kernel sweep(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 512, N, ctx.blocks.x * 512) {
    X[t :+ 512] = X[t :+ 512] + 1.0
    grid_barrier(BAR)
  }
}
```

Write instead:

```ph good
@persistent
kernel sweep(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 512, N, ctx.blocks.x * 512) {
    X[t :+ 512] = X[t :+ 512] + 1.0
  }
  grid_barrier(BAR)
}
```

## Fix
End the loop before the barrier. Where each round needs one, make the rounds equal: count them from 0 to
a number that has no block index in it, and compute the tile inside.

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
    for divergence in divergences(context.program, "trip"):
        certain = divergence.certain
        yield RULE.at(
            divergence.barrier.span,
            "some blocks go round this barrier's loop more often than others"
            if certain
            else "some blocks may go round this barrier's loop more often than others",
            severity="error" if certain else "warning",
            label="in the last rounds blocks wait here for ever for those that are done",
            related=chain(divergence, "the number of rounds differs between blocks"),
            help="end the loop before the barrier, or give every block the same number of rounds and skip the work, "
            "not the barrier, in those it does not need",
        )

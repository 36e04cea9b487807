"""No block needs what another did before this barrier.

## What it does
Notes a barrier across which no two blocks touch one cell, one of them by a store.

## Why it is bad
A barrier costs about a microsecond and lets every block wait for the slowest.

## Example
```ph bad
@persistent
kernel twice(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] * 2.0
  }
}
```

Write instead:

```ph good
@persistent
kernel twice(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    Y[t :+ 64] = X[t + 1 :+ 64] * 2.0
  }
}
```

## Fix
Remove it, if nothing outside the kernel relies on it.

## Limits
Where the analysis gives up, nothing is said, nor of a kernel with more than 6 barriers or 60 accesses, or of one whose
accesses meet in more than 4000 ways (three barriers under six loops, say).
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.divergence import unfounded
from phobos.check.rule import Context, Rule
from phobos.check.walk import barriers_of, called_from
from phobos.diagnostic import Diagnostic
from phobos.semantics import ir
from phobos.semantics.conflicts import meetings_of, separates
from phobos.semantics.footprints import footprints_of
from phobos.semantics.walking import unknown_waits

RULE = Rule.of(__name__, "info")
MOST_BARRIERS = 6  # of one kernel that are looked at,
MOST_ACCESSES = 60  # and accesses: each barrier costs an analysis of its own


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    barriers = barriers_of(program)
    if not barriers or len(barriers) > MOST_BARRIERS or len(footprints_of(program)) > MOST_ACCESSES:
        return
    if meetings_of(program) or any(unfounded(program)) or unknown_waits(program):
        return  # what is wrong, or unknown, comes first
    by_place: dict[tuple[str | None, int], list[ir.Barrier]] = {}
    for barrier in barriers:
        by_place.setdefault((barrier.span.owner, barrier.span.start), []).append(barrier)
    for group in by_place.values():
        if not any(separates(program, barrier) for barrier in group):
            yield RULE.at(
                group[0].span,
                "no block needs what another did before this barrier",
                label="separates nothing",
                related=called_from(group[0].calls),
                help="remove it: it makes every block wait for the slowest",
            )

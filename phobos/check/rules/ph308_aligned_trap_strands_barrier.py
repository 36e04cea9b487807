"""A promise is checked on the device in a kernel with a grid barrier.

## What it does
Notes a promised dimension that is known only at launch, in a kernel that calls `grid_barrier`.

## Why it is bad
With host checks off, the block that finds the promise broken leaves, and the others wait for it. The
launcher does not trap: it sets an abort flag beside the barrier, all blocks leave, and the host gets the line.

## Example
```ph bad
@persistent
@aligned(N = 64)
kernel step(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
}
```

Write instead:

```ph good
@persistent
kernel step(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
}
```

## Fix
Nothing, as long as the launcher's checks stay on. Another launcher must check the extent itself.

## Limits
None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import barriers_of
from phobos.diagnostic import Diagnostic, Related

RULE = Rule.of(__name__, "info")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    barriers = barriers_of(program)
    if not barriers:
        return
    known = dict(program.settings.sizes)
    for promise in program.promises:
        if promise.dim not in program.dims or promise.dim in known or promise.tile <= 1:
            continue
        yield RULE.at(
            promise.key,
            f"`{promise.dim}` is known at launch only; with host checks off a broken promise is found on the device",
            label="checked before every launch",
            related=(Related(barriers[0].span, "the other blocks would wait here"),),
            notes=(
                "the launcher checks it on the host; where that is switched off, the block that finds it broken "
                "sets an abort flag, and all blocks leave the barrier",
            ),
        )

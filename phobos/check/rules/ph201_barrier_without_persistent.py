"""A grid barrier stands in a kernel that is not `@persistent`.

## What it does
Reports `grid_barrier` in a kernel without the `@persistent` attribute, called directly or in a function.

## Why it is bad
An ordinary grid may be larger than what the card holds at once. The blocks that run wait at the barrier for
blocks that cannot start before one of them ends: the kernel hangs.

## Example
```ph bad
kernel two_steps(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
  grid_barrier(BAR)
}
```

Write instead:

```ph good
@persistent
kernel two_steps(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] * 2.0
  }
  grid_barrier(BAR)
}
```

## Fix
`--fix --unsafe-fixes` adds the attribute. The grid is then sized by the card, so that the blocks must stride
over the work.

## Limits
A host that sizes the grid itself still needs the attribute: it is the promise that the grid is resident.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import barriers_of, called_from, same_place, unique
from phobos.diagnostic import Diagnostic, Edit, Fix, Span

RULE = Rule.of(__name__, "error")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    barriers = barriers_of(program)
    if program.is_persistent or not barriers:
        return
    first = barriers[0]
    others = unique((b.span, "and this barrier") for b in barriers[1:] if not same_place(b.span, first.span))
    start = program.kernel.start
    yield RULE.at(
        first.span,
        f"`{program.name}` has a grid barrier but is not `@persistent`",
        label="waits for blocks that may not be able to start",
        related=called_from(first.calls) + others,
        help="put `@persistent` above the kernel and stride over the work by `ctx.blocks.x`",
        fix=Fix("add `@persistent`", "unsafe", (Edit(Span(None, start, start), "@persistent\n"),)),
    )

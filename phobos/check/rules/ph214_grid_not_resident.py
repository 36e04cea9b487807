"""The grid, or one block of it, does not fit on the card that was asked for.

## What it does
With `--target` or `target` in the configuration: reports a fixed grid larger than what the card holds at
once, and a kernel of which not even one block fits. Says the need, the limit and what limits it.

## Why it is bad
A persistent grid must be resident as a whole. The launcher refuses one that is not.

## Example
```ph bad
// run: kernel=wide N=65536 X=iota grid=100000
// check: --target h200
@persistent
kernel wide(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
}
```

Write instead:

```ph good
// run: kernel=wide N=65536 X=iota grid=1000
// check: --target h200
@persistent
kernel wide(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
}
```

## Fix
Leave the grid to the launcher, or use fewer threads or less shared memory.

## Limits
Registers are counted where the compiler can be asked, otherwise threads and shared memory only, which
makes the limit an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.cards import residency
from phobos.check.rule import Context, Rule
from phobos.check.walk import barriers_of
from phobos.diagnostic import Diagnostic, Span

RULE = Rule.of(__name__, "error")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    if not program.is_persistent and not barriers_of(program):
        return
    launch = program.launch.span
    name = program.kernel.name
    span = launch if launch is not None else Span(None, name.start, name.end)
    for target in context.targets:
        found = residency(context, target)
        if found is None:
            continue
        if found.per_multiprocessor == 0:
            yield RULE.at(
                span,
                f"not one block of `{program.name}` fits on {target}",
                label=f"needs {found.need}",
                notes=(f"the limit is {found.limiter}", *found.notes),
                help="use fewer threads or less shared memory",
            )
        elif context.grid is not None and found.resident is not None:
            blocks = 1
            for extent in context.grid.blocks:
                blocks *= extent
            if blocks > found.resident:
                yield RULE.at(
                    span,
                    f"{blocks} blocks cannot be resident on {target} at once: it holds {found.resident}",
                    label=f"{found.per_multiprocessor} on each of {found.multiprocessors} multiprocessors, "
                    f"limited by {found.limiter}",
                    notes=(f"{context.grid.source} fixes the grid", *found.notes),
                    help="leave the grid to the launcher, or fix a smaller one",
                )

"""A loop that starts at the block's own tile does not step by all blocks' tiles.

## What it does
Reports, in a `@persistent` kernel, a `for` from `b * F + c` whose step is not `F` times the number of blocks, and a
`while` that counts so and leaves cells out. An error where the step contains the number of blocks and, at some sizes
that were tried, cells are left out or done twice; a warning where it does not contain it, or where only loaded data
says that blocks come by.

## Why it is bad
Blocks start F cells apart. If one round of all of them covers more or less than a step, cells are left out
or two blocks work on the same ones.

## Example
```ph bad
@persistent
kernel skips(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 128, N, ctx.blocks.x * 256) {
    X[t :+ 128] = X[t :+ 128] + 1.0
  }
}
```

Write instead:

```ph good
@persistent
kernel skips(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 128, N, ctx.blocks.x * 128) {
    X[t :+ 128] = X[t :+ 128] + 1.0
  }
}
```

## Fix
Use one tile length in the start, the step and the spans of the body.

## Limits
Spans whose start is not a sum of products of the loop variable are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.races import elsewhere
from phobos.check.rule import Context, Rule
from phobos.check.strides import Stride, strides_of
from phobos.check.walk import called_from, unique
from phobos.diagnostic import Diagnostic
from phobos.semantics.grid import show

RULE = Rule.of(__name__, "error", "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    found = [stride for stride in strides_of(context.program) if stride.kind != "literal"]
    seen = {_place(stride) for stride in found}
    for stride in found:
        yield _said(stride, "")
    for told, program in elsewhere(context):
        for stride in strides_of(program):
            if stride.kind != "literal" and _place(stride) not in seen:
                seen.add(_place(stride))
                yield _said(stride, f"{told}; at the default constants the step fits")


def _place(stride: Stride) -> tuple[object, ...]:
    return stride.place.owner, stride.place.start, stride.place.end


def _said(stride: Stride, note: str) -> Diagnostic:
    first, step = show(stride.first), show(stride.step)
    wanted = f"{first} * ctx.blocks.x" if first != "1" else "ctx.blocks.x"
    speaks_of_grid = stride.kind == "grid"
    return RULE.at(
        stride.place,
        f"blocks start {first} cells apart, but step by {step}"
        if first != "1"
        else f"blocks start one cell apart, but step by {step}",
        severity="error" if stride.certain else "warning",
        label=stride.flaw or "does not grow with the number of blocks",
        related=unique([(stride.start, f"each block starts {first} after the one before")] if stride.start else [])
        + called_from(stride.calls),
        notes=((note,) if note else ())
        + (() if speaks_of_grid else ("with another number of blocks cells are left out or done twice",)),
        help=f"step by `{wanted}`",
    )

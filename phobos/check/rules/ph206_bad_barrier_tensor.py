"""The argument of `grid_barrier` is no barrier tensor.

## What it does
Reports an argument that is not the name of an i32 tensor parameter of shape `[n]` or `[n, 1]`, or that has
fewer than 2 elements.

## Why it is bad
The barrier counts arrivals in the first element and generations in the second. Anything else is overwritten
or never reaches the count.

## Example
```ph bad
@persistent
kernel small(X: tensor<f32>[N], BAR: tensor<i32>[1]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
}
```

Write instead:

```ph good
@persistent
kernel small(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
}
```

## Fix
Declare `BAR: tensor<i32>[2]` and pass its name.

## Limits
An extent that is known only at launch is checked there (PH208).
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import barriers_of, called_from
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics import ir

RULE = Rule.of(__name__, "error")


def check(context: Context) -> Iterator[Diagnostic]:
    for barrier in barriers_of(context.program):
        tensor = barrier.tensor
        wrong = complaint(tensor)
        if wrong is not None:
            yield RULE.at(
                barrier.argument,
                f"`{tensor.name}` cannot hold a grid barrier: {wrong}",
                label="not a barrier tensor",
                related=(Related(tensor.span, "declared here"), *called_from(barrier.calls)),
                help=f"declare it as `{tensor.name}: tensor<i32>[2]`, zeroed before the first launch",
            )


def complaint(tensor: ir.Tensor) -> str | None:
    """What keeps a tensor from being a barrier's, or None."""
    if tensor.dtype != "i32":
        return f"its elements are {tensor.dtype}, not i32"
    shape = [extent_of(extent) for extent in tensor.extents]
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        return "its shape must be `[n]` or `[n, 1]`"
    if shape[0] is not None and shape[0] < 2:
        return f"it has {shape[0]} element{'s' * (shape[0] != 1)} and needs 2"
    return None


def extent_of(extent: int | ir.Dim | ir.Constant) -> int | None:
    """An extent that is known when the kernel is compiled."""
    if isinstance(extent, ir.Constant):
        return extent.value
    return extent if isinstance(extent, int) else None

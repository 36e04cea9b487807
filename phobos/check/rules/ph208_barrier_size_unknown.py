"""The barrier tensor's size is known only at launch.

## What it does
Notes a barrier tensor whose extent is a symbol.

## Why it is bad
It needs at least 2 elements. The launcher checks that, nobody can before.

## Example
```ph bad
@persistent
kernel step(X: tensor<f32>[N], BAR: tensor<i32>[B]) {
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
Write `tensor<i32>[2]`.

## Limits
None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import barriers_of
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics import ir

RULE = Rule.of(__name__, "info")


def check(context: Context) -> Iterator[Diagnostic]:
    seen: set[ir.Tensor] = set()
    for barrier in barriers_of(context.program):
        tensor = barrier.tensor
        if tensor in seen or not isinstance(tensor.extents[0], ir.Dim):
            continue
        seen.add(tensor)
        yield RULE.at(
            barrier.argument,
            f"the size of `{tensor.name}` is checked at launch: it needs at least 2 elements",
            label="extent known at launch only",
            related=(Related(tensor.span, "declared here"),),
            help=f"`{tensor.name}: tensor<i32>[2]` settles it",
        )

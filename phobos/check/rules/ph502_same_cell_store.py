"""Several blocks store different values to one place.

## What it does
Reports a store whose place does not depend on the block index, while its value does.

## Why it is bad
The block that comes last wins, and which one that is nobody knows. Often `p * T` is missing in the
subscript.

## Example
```ph bad
kernel clash(X: tensor<f32>[N], OUT: tensor<f32>[64]) {
  let p = ctx.block.x
  OUT[0 :+ 64] = X[p * 64 :+ 64]
}
```

Write instead:

```ph good
kernel copy(X: tensor<f32>[N], OUT: tensor<f32>[N]) {
  let p = ctx.block.x
  OUT[p * 64 :+ 64] = X[p * 64 :+ 64]
}
```

## Fix
Store to the block's own place, add up with `atomic_add`, or let one block store: `if ctx.block.x == 0`.

## Limits
A value that is the same for all blocks may be stored by all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.races import everywhere, other_site
from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic

RULE = Rule.of(__name__, "error", "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    for conflict, later, earlier, notes in everywhere(context, "same-cell"):
        name = later.access.base.name
        certain = conflict.certain
        yield RULE.at(
            later.access.span,
            f"every block stores its own value to the same cells of `{name}`"
            if certain
            else f"blocks may store different values to the same cells of `{name}`",
            severity="error" if certain else "warning",
            label="the block that comes last wins",
            related=other_site(later, earlier, "and here"),
            notes=notes,
            help="store to the block's own place, add up with an atomic, or let one block store: `if ctx.block.x == 0`",
        )

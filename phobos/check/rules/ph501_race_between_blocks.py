"""One block may write what another reads or writes in the same phase.

## What it does
Compares, for each stretch between grid barriers, the cells that different blocks read and write. Reports
a pair that can meet, with both index forms and, where there is one, two blocks and a grid at which they do.

## Why it is bad
Nothing orders blocks between two barriers. The result depends on which comes first.

## Example
```ph bad
@persistent
kernel shift(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N - 64, ctx.blocks.x * 64) {
    X[t :+ 64] = Y[t :+ 64]
    Y[t :+ 64] = X[t + 64 :+ 64]
  }
}
```

Write instead:

```ph good
@persistent
kernel shift(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N - 64, ctx.blocks.x * 64) {
    X[t :+ 64] = Y[t :+ 64]
  }
  grid_barrier(BAR)
  for t in range(ctx.block.x * 64, N - 64, ctx.blocks.x * 64) {
    Y[t :+ 64] = X[t + 64 :+ 64]
  }
}
```

## Fix
Put a grid barrier between the two, or let each block keep to its own cells.

## Limits
An error where a witness exists, a warning where only loaded data or the order of atomics decides. What is
not a sum of products of block index, loop rounds and extents is PH506.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.races import does, everywhere, has_barrier, other_site
from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic

RULE = Rule.of(__name__, "error", "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    for conflict, later, earlier, notes in everywhere(context, "race"):
        name = later.access.base.name
        may = "" if conflict.certain else "may "
        verb = does(later) if conflict.certain else does(later).rstrip("s")
        other = "another block writes" if earlier.kind == "store" else "another block reads"
        yield RULE.at(
            later.access.span,
            f"one block {may}{verb} cells of `{name}` that {other} in the same phase",
            severity="error" if conflict.certain else "warning",
            label=f"one block {does(later)} here",
            related=other_site(later, earlier, f"while another {does(earlier)} here"),
            notes=notes,
            help="put a `grid_barrier` between the two, or let each block keep to its own cells"
            if program.is_persistent or has_barrier(program)
            else "let each block keep to its own cells, or split the kernel in two",
        )

"""The kernel does not say how many blocks it needs.

## What it does
Notes an ordinary kernel that reads a block index which starts no stored span, or starts them in ways that
say different things.

## Why it is bad
The launcher infers the grid from stored spans. Here the caller must pass one.

## Example
```ph bad
kernel sums(X: tensor<f32>[N], Y: tensor<f32>[64]) {
  let p = ctx.block.x
  Y[p % 64] = X[p]
}
```

Write instead:

```ph good
kernel sums(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let p = ctx.block.x
  Y[p] = X[p]
}
```

## Fix
Pass `grid=` to the launcher, or store a span that begins at the block's own tile.

## Limits
None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import all_expressions, called_from
from phobos.diagnostic import Diagnostic
from phobos.semantics import ir
from phobos.semantics.grid import grid_of

RULE = Rule.of(__name__, "info")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    grid = grid_of(program)
    if grid.persistent or context.grid is not None:
        return
    if any(problem.code == "PH403" and problem.severity == "error" for problem in program.problems):
        return  # a length of 0 has been told of: at any other the span may say it
    for number, axis in enumerate(grid.axes):
        if not axis.read or axis.uses:
            continue
        for one in all_expressions(program):
            if isinstance(one, ir.BlockIndex) and one.axis == number:
                yield RULE.at(
                    one.span,
                    f"nothing in `{program.name}` says how many blocks axis {'xyz'[number]} has",
                    label=axis.reason,
                    related=called_from(one.calls),
                    help="pass `grid=` to the launch, or store a span that starts at the block's own tile",
                )
                break

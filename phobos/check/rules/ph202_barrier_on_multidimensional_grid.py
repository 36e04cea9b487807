"""A kernel with a grid barrier uses a second or third grid axis.

## What it does
Reports a kernel that calls `grid_barrier` and reads axis y or z of `ctx.block`, `ctx.blocks` or
`program_id`, and a `// run:` header that gives such a kernel more than one dimension. Every use is shown.

## Why it is bad
The barrier counts the blocks of a one-dimensional, resident grid. On such a grid the other axes are 0, so
that all but the first row of the work is left out; on a larger one the barrier hangs.

## Example
```ph bad
@persistent
kernel rows(X: tensor<f32>[M, N], BAR: tensor<i32>[2]) {
  let row = ctx.block.y
  for c in range(ctx.block.x * 128, N, ctx.blocks.x * 128) {
    X[row :+ 1, c :+ 128] = X[row :+ 1, c :+ 128] + 1.0
  }
  grid_barrier(BAR)
}
```

Write instead:

```ph good
@persistent
kernel rows(X: tensor<f32>[M, N], BAR: tensor<i32>[2]) {
  for row in range(0, M) {
    for c in range(ctx.block.x * 128, N, ctx.blocks.x * 128) {
      X[row :+ 1, c :+ 128] = X[row :+ 1, c :+ 128] + 1.0
    }
  }
  grid_barrier(BAR)
}
```

## Fix
Walk the other dimension in a loop, or derive both indices from `ctx.block.x` by `/` and `%`.

## Limits
None known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phobos.check.rule import Context, Rule
from phobos.check.walk import all_expressions, barriers_of, called_from, same_place, unique
from phobos.diagnostic import Diagnostic, Span
from phobos.semantics import ir
from phobos.semantics.program import Program

RULE = Rule.of(__name__, "error")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    barriers = barriers_of(program)
    if not barriers:
        return
    first = barriers[0]
    uses = other_axes(program)
    fixed = context.grid
    several = fixed is not None and len([extent for extent in fixed.blocks[1:] if extent != 1]) > 0
    if not uses and not several:
        return
    notes = (f"{fixed.source} gives the kernel more than one dimension",) if fixed and several else ()
    shown: list[tuple[Span, str]] = []
    for use in uses:
        shown += [(use.span, f"axis {'xyz'[use.axis]} is used here"), *_calls(use.calls)]
    for barrier in barriers[1:]:
        if not same_place(barrier.span, first.span):
            shown += [(barrier.span, "this barrier too"), *_calls(barrier.calls)]
    yield RULE.at(
        first.span,
        f"the grid barrier needs a one-dimensional grid, but `{program.name}` "
        + ("uses a second axis" if uses else "is launched with more dimensions"),
        label="counts the blocks of axis x only",
        related=called_from(first.calls) + unique(shown),
        notes=notes,
        help="loop over the other dimension, or derive both indices from `ctx.block.x` by `/` and `%`"
        if uses
        else "launch it with one dimension",
    )


def _calls(calls: Sequence[Span]) -> Iterator[tuple[Span, str]]:
    return ((call.span, call.message) for call in called_from(calls))


def other_axes(program: Program) -> list[ir.BlockIndex | ir.GridExtent]:
    """Every read of axis y or z."""
    return [one for one in all_expressions(program) if isinstance(one, (ir.BlockIndex, ir.GridExtent)) and one.axis > 0]

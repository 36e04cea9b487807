"""One block reaches by an atomic what another reaches by a plain access.

## What it does
Reports a cell that one block may touch by an atomic and another by a plain load or store in one phase.

## Why it is bad
The plain access is ordered by nothing: it may see the cell before or after, and a plain store may undo the
atomic.

## Example
```ph bad
@persistent
kernel count(C: tensor<i32>[1], Y: tensor<f32>[1]) {
  if ctx.block.x == 0 {
    Y[0] = f32(C[0])
  }
  atomic_add(C, 0, 1)
}
```

Write instead:

```ph good
@persistent
kernel count(C: tensor<i32>[1], Y: tensor<f32>[1], BAR: tensor<i32>[2]) {
  if ctx.block.x == 0 {
    Y[0] = f32(C[0])
  }
  grid_barrier(BAR)
  atomic_add(C, 0, 1)
}
```

## Fix
Put a barrier between the two, or make both atomic.

## Limits
A plain access that runs only for one result of an atomic on that tensor (the last block resets its counter)
is fine and not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.races import of_kind, other_site
from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic

RULE = Rule.of(__name__, "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    for _, later, earlier in of_kind(context.program, "atomic"):
        name = later.access.base.name
        kinds = {"atomic": "an atomic", "load": "a plain load", "store": "a plain store"}
        yield RULE.at(
            later.access.span,
            f"one block reaches `{name}` by {kinds[later.kind]} and another by {kinds[earlier.kind]}, "
            "and nothing orders them",
            label=kinds[later.kind],
            related=other_site(later, earlier, kinds[earlier.kind]),
            help="put a `grid_barrier` between the two, or make both atomic",
        )

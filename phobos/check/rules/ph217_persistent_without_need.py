"""A kernel is `@persistent` and uses nothing that needs it.

## What it does
Notes a `@persistent` kernel with neither a barrier nor a loop that strides by the grid, and that does not
wait for other blocks.

## Why it is bad
A persistent grid is limited to what the card holds at once. An ordinary one of any size would do.

## Example
```ph bad
@persistent
kernel first(X: tensor<f32>[64]) {
  X[0 :+ 64] = 1.0
}
```

Write instead:

```ph good
kernel first(X: tensor<f32>[64]) {
  X[0 :+ 64] = 1.0
}
```

## Fix
Take the attribute away.

## Limits
None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.rules.ph210_persistent_owns_one_tile import grid_decides, owned_stores
from phobos.check.walk import barriers_of, every
from phobos.diagnostic import Diagnostic, Edit, Fix, Span
from phobos.semantics import ir
from phobos.semantics.walking import unknown_waits

RULE = Rule.of(__name__, "info")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    if not program.is_persistent or barriers_of(program) or unknown_waits(program) or grid_decides(program):
        return
    if any(True for _ in every(program, ir.Atomic)) or next(owned_stores(program), None) is not None:
        return  # blocks may wait for one another; or PH210 says what is wrong
    attribute = program.flags["persistent"]
    yield RULE.at(
        Span(None, attribute.start, attribute.end),
        f"nothing in `{program.name}` needs a persistent grid",
        label="neither a barrier nor a stride by the grid",
        help="without the attribute the grid may be of any size",
        fix=Fix("remove `@persistent`", "unsafe", (Edit(Span(None, attribute.start, attribute.end), ""),)),
    )

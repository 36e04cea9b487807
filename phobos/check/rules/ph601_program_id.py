"""`program_id` is the older spelling of the block index.

## What it does
Notes `program_id(0|1|2)`.

## Why it is bad
Level 0.2 writes `ctx.block.x`, which says what it is and goes with `ctx.blocks.x`.

## Example
```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = program_id(0)
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
`--fix` rewrites it.

## Limits
A kernel that must stay at level 0.1 can ignore the rule.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic, Edit, Fix, Span
from phobos.semantics import ir
from phobos.syntax import tree

RULE = Rule.of(__name__, "info")


def check(context: Context) -> Iterator[Diagnostic]:
    for node, made in context.program.node_types.items():
        if not isinstance(node, tree.Call) or node.callee.text != "program_id":
            continue
        if not isinstance(made, ir.BlockIndex):
            continue
        spelling = f"ctx.block.{'xyz'[made.axis]}"
        span = Span(made.span.owner, node.start, node.end)
        yield RULE.at(
            span,
            f"`program_id({made.axis})` is written `{spelling}` since level 0.2",
            label="older spelling",
            fix=Fix(f"write `{spelling}`", "safe", (Edit(span, spelling),)),
            tags=("deprecated",),
        )

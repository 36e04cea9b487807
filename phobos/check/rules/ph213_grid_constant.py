"""A constant stands for the number of blocks, and the launcher binds it.

## What it does
Names the `@autotune` constant that a `@persistent` kernel uses as its grid.

## Why it is bad
Its listed value is not used unless the caller asks for that grid; the kernel is compiled again for the number
of blocks that are resident. `ctx.blocks.x` needs none of that.

## Example
```ph bad
@persistent
@autotune(CTAS in [132])
kernel fixed(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, CTAS * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
}
```

Write instead:

```ph good
@persistent
kernel fixed(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
}
```

## Fix
Write `ctx.blocks.x`, unless the compiler should know the number.

## Limits
None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import all_expressions, called_from, same_place
from phobos.diagnostic import Diagnostic, Edit, Fix, Related
from phobos.semantics import ir
from phobos.semantics.grid import grid_of

RULE = Rule.of(__name__, "info")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    for found in grid_of(program).constants:
        constant = found.constant
        uses = [
            one for one in all_expressions(program) if isinstance(one, ir.ConstantRef) and one.constant is constant
        ]
        if not uses:
            continue
        use = next((one for one in uses if same_place(one.span, found.span)), uses[0])
        fate, listed = (
            (
                "the launcher sets it to the number of resident blocks",
                "listed here; the value is used only when the caller asks for that grid",
            )
            if found.stride_form
            else ("the grid has that many blocks", "its value is the grid")
        )
        yield RULE.at(
            use.span,
            f"`{constant.name}` stands for the number of blocks: {fate}",
            label="used as the grid's extent",
            related=(Related(constant.span, listed), *called_from(use.calls)),
            help="`ctx.blocks.x` needs no binding",
            fix=Fix("write `ctx.blocks.x`", "unsafe", (Edit(use.span, "ctx.blocks.x"),)),
        )

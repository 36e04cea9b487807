"""A loop steps by a number of blocks that is written as a literal.

## What it does
Reports, in a `@persistent` kernel, a `for` from `b * F + c` whose step is `F` times an integer literal.

## Why it is bad
The card decides how many blocks there are. On any other number cells are left out or done twice.

## Example
```ph bad
@persistent
kernel fixed(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, 132 * 64) {
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
Write `ctx.blocks.x` for the number.

## Limits
The literal is taken for a number of blocks wherever it multiplies F.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.strides import strides_of
from phobos.check.walk import called_from, inside
from phobos.diagnostic import Diagnostic, Edit, Fix, Related
from phobos.semantics import ir
from phobos.semantics.grid import show

RULE = Rule.of(__name__, "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    for stride in strides_of(context.program):
        loop = stride.loop
        if stride.kind != "literal" or not isinstance(loop, ir.For):
            continue
        first = show(stride.first)
        literals = [one for one in inside(loop.step) if isinstance(one, ir.IntLiteral) and one.value == stride.literal]
        fix = None
        if len(literals) == 1:
            fix = Fix("write `ctx.blocks.x`", "unsafe", (Edit(literals[0].span, "ctx.blocks.x"),))
        wanted = f"{first} * ctx.blocks.x" if first != "1" else "ctx.blocks.x"
        yield RULE.at(
            loop.step.span,
            f"the loop is written for exactly {stride.literal} blocks, but the card decides how many there are",
            label="on any other number cells are left out or done twice",
            related=(
                Related(loop.lo.span, f"each block starts {first} after the one before"),
                *called_from(loop.calls),
            ),
            help=f"step by `{wanted}`",
            fix=fix,
        )

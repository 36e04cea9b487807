"""A reduction over a span that can run past the end counts the zeros that stand for missing cells.

## What it does
Reports `rowmax` and `rowargmax` over a span that may be ragged, and a sum of something that is not 0 where
the span is filled, such as `exp(x)`, `x + 1.0` or `1.0 / x`.

## Why it is bad
Cells past an extent read as 0. A maximum of negative numbers becomes 0, and `exp(0)` is 1.

## Example
```ph bad
kernel top(X: tensor<f32>[M, N], Y: tensor<f32>[M, 1]) {
  let p = ctx.block.x
  Y[p :+ 1, 0 :+ 1] = rowmax(X[p :+ 1, 0 :+ 64])
}
```

Write instead:

```ph good
kernel top(X: tensor<f32>[M, N], Y: tensor<f32>[M, 1]) {
  let p = ctx.block.x
  Y[p :+ 1, 0 :+ 1] = rowmax(where(iota(64) < N, X[p :+ 1, 0 :+ 64], -3.0e38))
}
```

## Fix
Put the missing cells right with `where`, promise whole tiles with `@aligned`, or take away what they added.

## Limits
A correction behind the reduction, such as subtracting the number of filled cells, is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.fill import Filled, fills_of
from phobos.check.rule import Context, Rule
from phobos.check.walk import all_expressions, called_from
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics import ir

RULE = Rule.of(__name__, "warning")
REDUCTIONS = ("rowmax", "rowargmax", "rowsum")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    fills = fills_of(program)
    seen: set[tuple[str | None, int]] = set()
    for one in all_expressions(program):
        if not isinstance(one, ir.BuiltinCall) or one.name not in REDUCTIONS:
            continue
        filled = fills.of(one.arguments[0])
        key = (one.span.owner, one.span.start)
        if filled is None or key in seen or not _harms(one.name, filled):
            continue
        seen.add(key)
        yield _finding(one, filled)


def _harms(reduction: str, filled: Filled) -> bool:
    if reduction == "rowsum":
        return filled.value == "nonzero"
    return filled.value != "handled"


def _finding(call: ir.BuiltinCall, filled: Filled) -> Diagnostic:
    name = filled.access.base.name
    what = {
        "rowmax": "a missing cell counts as 0, which beats every negative number",
        "rowargmax": "a missing cell counts as 0, and its place may be the answer",
        "rowsum": "a missing cell reads as 0, and what is computed from it is not 0",
    }[call.name]
    return RULE.at(
        call.span,
        f"`{call.name}` counts the cells of `{name}` that lie past its end",
        label=what,
        related=(Related(filled.access.span, "this span can run past the end"), *called_from(call.calls)),
        help="put the missing cells right with `where`, or promise whole tiles with `@aligned`",
    )

"""`@pipeline` asks for a double-buffered loop, and there is none.

## What it does
Reports a kernel with `@pipeline` in which no loop is double-buffered, with the reasons: no loop loads tiles for a
`dot`, or one does and the emitter fetches them only when they are needed.

## Why it is bad
The attribute is an assertion: it is written so that a kernel that lost its pipeline does not pass unnoticed.

## Example
```ph bad
@pipeline
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
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
Remove the attribute, or load the operands of a `dot` in a loop. On the ordinary units what is double-buffered holds one
`dot` that accumulates into a tile, views and numbers, and nothing else. On tensor cores it may hold several products
and what is computed on tiles between them, but no way out and no store to a tensor. Two buffers for the operands must
fit: `@dynshared` gives all that the card has.

## Limits
What the emitter of this project does is reported; another compiler may decide otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import called_from
from phobos.diagnostic import Diagnostic, Related, Span

RULE = Rule.of(__name__, "error")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    attribute = program.flags.get("pipeline")
    if attribute is None or any(problem.severity == "error" for problem in program.problems):
        return
    from phobos.lowering.decide import decisions_of

    found = decisions_of(program).pipelines
    if found.loops:
        return
    yield RULE.at(
        Span(None, attribute.start, attribute.end),
        "`@pipeline` asks for a double-buffered loop, and no loop " + ("is one" if found.possible else "can be one"),
        label=found.summary,
        related=tuple(
            item
            for one in found.obstacles
            if one.possible or not found.possible
            for item in (Related(one.span, one.why), *called_from(one.calls))
        ),
        help="let a loop hold one `dot` of tiles loaded in it, accumulated into a tile, or remove the attribute"
        if found.possible
        else "load the operands of a `dot` from tensors in a loop, or remove the attribute",
    )

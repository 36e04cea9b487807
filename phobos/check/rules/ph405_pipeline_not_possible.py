"""`@pipeline` asks for a double-buffered loop, and there is none.

## What it does
Reports a kernel with `@pipeline` in which no loop loads tiles for a `dot`, with the reasons.

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
Remove the attribute, or load the operands of a `dot` in a loop.

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
    from phobos.lowering.pipelines import pipelines_of

    found = pipelines_of(program)
    if found.loops:
        return
    related = tuple(item for span, calls, why in found.reasons for item in (Related(span, why), *called_from(calls)))
    yield RULE.at(
        Span(None, attribute.start, attribute.end),
        "`@pipeline` asks for a double-buffered loop, and no loop can be one",
        label=found.summary,
        related=related,
        help="load the operands of a `dot` from tensors in a loop, or remove the attribute",
    )

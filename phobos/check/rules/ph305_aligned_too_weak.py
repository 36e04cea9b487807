"""A span keeps its mask only because the promised tile is too small.

## What it does
Notes a span that starts on a multiple of its length, on a promised dimension whose tile is no whole
multiple of that length. Once for each dimension and length.

## Why it is bad
The mask costs time, and the promise was made to lose it.

## Example
```ph bad
@aligned(N = 32)
kernel weak(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 128 :+ 128] = X[p * 128 :+ 128] * 2.0
}
```

Write instead:

```ph good
@aligned(N = 128)
kernel weak(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 128 :+ 128] = X[p * 128 :+ 128] * 2.0
}
```

## Fix
Promise the length of the span, where that is true.

## Limits
None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.promises import spans_on
from phobos.check.rule import Context, Rule
from phobos.check.walk import called_from
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics.values import values_of

RULE = Rule.of(__name__, "info")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    values = values_of(program)
    seen: set[tuple[str, int]] = set()
    for promise in program.promises:
        if promise.tile <= 0:
            continue
        for span in spans_on(program, promise):
            length = span.sub.static
            if length is None or length <= 1 or not span.mask.needed or promise.tile % length == 0:
                continue
            start = values.divisor(values.poly(span.sub.first))
            if start % length != 0 or (promise.dim, length) in seen:
                continue
            seen.add((promise.dim, length))
            yield RULE.at(
                span.place,
                f"this span keeps its mask: `{promise.dim}` is only promised to be a whole number of {promise.tile}",
                label=f"starts on a multiple of {length}, and is {length} long",
                related=(Related(promise.key, "the promise"), *called_from(span.access.calls)),
                help=f"`@aligned({promise.dim} = {length})` would do, where that is true",
            )

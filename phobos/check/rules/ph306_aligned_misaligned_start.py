"""A span on a promised dimension starts off a tile boundary, so its mask stays.

## What it does
Reports a span that can still run past the end of a promised dimension: a warning for a stored span that
provably starts off a boundary, a note for a loaded one and where the start is not proved.

## Why it is bad
The promise was made to lose the mask, and a shifted start is often a mistake.

## Example
```ph bad
@aligned(N = 64)
kernel off(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 + 8 :+ 64] = X[p * 64 + 8 :+ 64] * 2.0
}
```

Write instead:

```ph good
@aligned(N = 64)
kernel off(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
Start on a multiple of the length.

## Limits
A start that is read from memory is never proved.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.promises import SpanOn, spans_on, starts_off
from phobos.check.rule import Context, Rule
from phobos.check.walk import called_from
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics.program import Promise
from phobos.semantics.values import values_of

RULE = Rule.of(__name__, "warning", "info")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    values = values_of(program)
    for promise in program.promises:
        if promise.tile <= 0:
            continue
        warned: set[object] = set()
        noted: set[object] = set()
        spans = sorted(spans_on(program, promise), key=lambda span: not span.stored)
        for span in spans:
            length = span.sub.static
            if length is None or length <= 1 or not span.mask.needed:
                continue
            first = values.poly(span.sub.first)
            if values.divisor(first) % length == 0:
                continue  # PH305, or nothing that a start could help
            off = starts_off(first, length)
            key = (first.key, length)
            if key in warned or key in noted:
                continue
            if off and span.stored:
                warned.add(key)
            else:
                noted.add(key)
            yield _finding(promise, span, length, off)


def _finding(promise: Promise, span: SpanOn, length: int, off: bool) -> Diagnostic:
    return RULE.at(
        span.place,
        f"this {'store' if span.stored else 'load'} can still run past the end of `{promise.dim}`, "
        f"though whole tiles are promised",
        severity="warning" if off and span.stored else "info",
        label=f"starts off a multiple of {length}" if off else f"not proved to start on a multiple of {length}",
        related=(Related(promise.key, "the promise"), *called_from(span.access.calls)),
        help=f"start on a multiple of {length}; as it is, the span keeps its mask",
    )

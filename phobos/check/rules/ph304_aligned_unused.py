"""A promise of `@aligned` changes nothing.

## What it does
Notes a promise thanks to which no mask goes and no start is proved, where no built-in reads the dimension
whole either.

## Why it is bad
It still is checked at every launch, and refuses extents that would do no harm.

## Example
```ph bad
@aligned(N = 64)
kernel first(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p] = X[p] * 2.0
}
```

Write instead:

```ph good
@aligned(N = 64)
kernel first(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
Remove it, or use tiles of that size.

## Limits
None known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from phobos.check.promises import spans_on
from phobos.check.rule import Context, Rule
from phobos.check.rules import ph303_aligned_broken as ph303
from phobos.check.rules import ph305_aligned_too_weak as ph305
from phobos.check.rules import ph306_aligned_misaligned_start as ph306
from phobos.diagnostic import Diagnostic
from phobos.semantics import ir
from phobos.semantics.masks import masks_of, points_of
from phobos.semantics.program import Program, Promise

RULE = Rule.of(__name__, "info")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    spoken = {d.related[0].span.start for rule in (ph305, ph306) for d in rule.check(context) if d.related}
    spoken |= {d.span.start for d in ph303.check(context)}
    times = Counter(promise.dim for promise in program.promises)
    for promise in program.promises:
        if times[promise.dim] > 1:
            continue  # PH307; which of them is kept, nobody knows yet
        if promise.key.start in spoken or promise.tile <= 1 or _is_used(program, promise):
            continue
        yield RULE.at(
            promise.key,
            f"nothing uses the promise about `{promise.dim}`",
            label="no mask goes thanks to it",
            help="remove it: it is checked at every launch",
        )


def _is_used(program: Program, promise: Promise) -> bool:
    for masks in masks_of(program).values():
        if any(mask is not None and promise in mask.promises for mask in masks):
            return True
    for points in points_of(program).values():
        if any(point is not None and promise in point.promises for point in points):
            return True
    return any(isinstance(span.sub, ir.SliceSub) and span.sub.static is None for span in spans_on(program, promise))

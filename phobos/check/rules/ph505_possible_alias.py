"""The kernel is right only if two of its tensors do not overlap.

## What it does
Notes a pair of tensor parameters, one of them written, that different blocks touch in one phase.

## Why it is bad
Given one array twice, or two slices that overlap, blocks would race. The launcher refuses such a call.

## Example
```ph bad
@persistent
kernel neighbour(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    Y[t :+ 64] = X[t + 1 :+ 64]
  }
}
```

Write instead:

```ph good
@persistent
kernel double(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] * 2.0
  }
}
```

## Fix
Nothing, unless the kernel is to run in place.

## Limits
None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.races import told_aliases_of
from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics import ir

RULE = Rule.of(__name__, "info")


def check(context: Context) -> Iterator[Diagnostic]:
    seen: set[object] = set()  # pairs, and stores: one is reported once
    for conflict in told_aliases_of(context.program):
        one, other = conflict.first, conflict.second
        pair = frozenset((one.access.base, other.access.base))
        if pair in seen or not isinstance(one.access.base, ir.Tensor):
            continue
        seen.add(pair)
        written, read = (one, other) if one.kind == "store" else (other, one)
        span = written.access.span
        place = span.owner, span.start, span.end
        if place in seen:
            continue
        seen.add(place)
        yield RULE.at(
            span,
            f"right only if `{written.access.base.name}` and `{read.access.base.name}` do not overlap in memory",
            label="written here",
            related=(Related(read.access.span, "touched here by other blocks in the same phase"),),
            notes=("the launcher refuses arrays that overlap",),
        )

"""An access lies outside a tensor or tile whose size is known.

## What it does
Reports a point outside a static extent, and a slice that lies wholly outside one.

## Why it is bad
A point access has no mask: it reads or destroys other memory. A slice wholly outside reads only zeros and
stores nothing.

## Example
```ph bad
kernel last(X: tensor<f32>[64], Y: tensor<f32>[1]) {
  Y[0] = X[64]
}
```

Write instead:

```ph good
kernel last(X: tensor<f32>[64], Y: tensor<f32>[1]) {
  Y[0] = X[63]
}
```

## Fix
Indices run from 0 to the extent less 1.

## Limits
A slice that only runs past the end is masked and no finding. Extents known at launch only are checked by
the reference runtime and by `--debug` builds.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import called_from, covering
from phobos.diagnostic import Diagnostic, Related, Span
from phobos.semantics import ir
from phobos.semantics.grid import show
from phobos.semantics.masks import masks_of, points_of
from phobos.semantics.values import values_of

RULE = Rule.of(__name__, "error")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    values = values_of(program)
    for access, masks in masks_of(program).items():
        for axis, mask in enumerate(masks):
            if mask is not None and mask.outside:
                yield _outside(
                    access, axis, "this slice lies wholly outside", mask.reason, show(values.extent(access.base, axis))
                )
    for access, points in points_of(program).items():
        for axis, point in enumerate(points):
            if point is not None and point.state == "outside":
                yield _outside(
                    access, axis, "this index lies outside", point.reason, show(values.extent(access.base, axis))
                )


def _outside(access: ir.Access, axis: int, what: str, reason: str, extent: str) -> Diagnostic:
    base = access.base
    sub = access.subs[axis]
    span: Span = sub.index.span if isinstance(sub, ir.PointSub) else covering(sub.first.span, sub.length.span)
    what_base = "tensor" if isinstance(base, ir.Tensor) else "tile"
    return RULE.at(
        span,
        f"{what} the {what_base} `{base.name}`, which has {extent} cells there",
        label=reason,
        related=(Related(base.span, f"axis {axis} has the extent {extent}"), *called_from(access.calls)),
        help=f"indices run from 0 to {int(extent) - 1}" if extent.isdigit() and int(extent) > 0 else None,
    )

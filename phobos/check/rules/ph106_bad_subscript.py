"""A subscript does not fit what it stands on.

## What it does
Reports a wrong number of subscripts, points mixed with slices, a subscript that is no integer, and a
length that is known only at launch where the tile must have a fixed size.

## Why it is bad
One subscript names the cells of one dimension, and a tile lives in storage whose size is fixed when the
kernel is compiled.

## Example
```ph bad
kernel scale(X: tensor<f32>[M, N]) {
  let p = ctx.block.x
  X[p, 0 :+ 64] = X[p, 0 :+ 64] * 2.0
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[M, N]) {
  let p = ctx.block.x
  X[p :+ 1, 0 :+ 64] = X[p :+ 1, 0 :+ 64] * 2.0
}
```

## Fix
Write one subscript for each dimension, and `i :+ 1` for a point among slices.

## Limits
Whether a slice of runtime length can run past an extent is decided as for every mask: where no proof is found,
it may.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import called_from, covering
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics import ir
from phobos.semantics.masks import Mask, masks_of
from phobos.semantics.types import extent_text

RULE = Rule.of(__name__, "error")


def check(context: Context) -> Iterator[Diagnostic]:
    """Slices that may need a mask although one of their lengths is known only at launch."""
    if any(problem.code == "PH403" and problem.severity == "error" for problem in context.program.problems):
        return  # a length of 0 has been told of, and is none that only the launch knows
    for access, masks in masks_of(context.program).items():
        runtime = next((axis for axis, sub in enumerate(access.subs) if _is_runtime(sub)), None)
        if runtime is None:
            continue
        masked = next(((axis, mask) for axis, mask in enumerate(masks) if mask is not None and mask.needed), None)
        if masked is not None:
            yield _masked(access, runtime, *masked)


def _is_runtime(sub: ir.Sub) -> bool:
    return isinstance(sub, ir.SliceSub) and sub.static is None


def _masked(access: ir.Access, runtime: int, axis: int, mask: Mask) -> Diagnostic:
    base = access.base
    sub = access.subs[axis]
    assert isinstance(sub, ir.SliceSub)
    extent = base.extents[axis] if isinstance(base, ir.Tensor) else None
    promise = (
        f"promise whole tiles: `@aligned({extent_text(extent)} = {sub.static})`, or "
        if isinstance(extent, ir.Dim) and sub.static is not None and sub.static > 1
        else ""
    )
    return RULE.at(
        access.span,
        f"this slice of `{base.name}` may need a mask, and a masked slice has lengths known when compiled",
        label=f"axis {axis} may run past the end, axis {runtime} has a runtime length",
        related=(Related(covering(sub.first.span, sub.length.span), mask.reason), *called_from(access.calls)),
        help=f"{promise}walk the runtime axis in tiles of a constant length",
    )

"""There may be more blocks than places for their results.

## What it does
Reports a place that every block has of its own, `P[p]` or `P[p :+ 1]`, in a dimension that a fixed grid
exceeds (error), that a configured target may exceed (warning), or that the launcher must respect (note).

## Why it is bad
A store past the end is masked: the result of such a block is lost without a word.

## Example
```ph bad
// run: kernel=slots N=4096 X=iota P=zeros grid=8
@persistent
kernel slots(X: tensor<f32>[1, N], P: tensor<f32>[1, 4]) {
  let p = ctx.block.x
  var sum: tile<f32>[1, 1] = 0.0
  for t in range(p * 64, N, ctx.blocks.x * 64) {
    sum += rowsum(X[0 :+ 1, t :+ 64])
  }
  P[0 :+ 1, p :+ 1] = sum
}
```

Write instead:

```ph good
@persistent
kernel totals(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
}
```

## Fix
Make the dimension at least as large as the grid can be, or fix a smaller grid.

## Limits
A condition around the access that bounds the block index silences the rule, whatever its bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.cards import residency
from phobos.check.rule import Context, Rule
from phobos.check.walk import called_from, same_place, unique
from phobos.diagnostic import Diagnostic, Related, Severity
from phobos.semantics.grid import CellCap, grid_of, show

RULE = Rule.of(__name__, "error", "warning", "info")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    grid = grid_of(program)
    same: dict[object, list[CellCap]] = {}  # a dimension that is too short is one mistake, however often it is used
    for cap in grid.caps:
        same.setdefault((cap.tensor, cap.extent, cap.axis), []).append(cap)
    for cap, *others in same.values():
        extent = cap.extent.constant
        fixed = context.grid.blocks[cap.axis] if context.grid and cap.axis < len(context.grid.blocks) else None
        if grid.persistent and cap.axis != 0:
            continue
        severity: Severity = "info"
        notes: tuple[str, ...] = ()
        if fixed is not None and extent is not None and fixed > extent and context.grid is not None:
            severity = "error"
            notes = (f"{context.grid.source} gives {fixed} blocks; the launch is refused",)
        elif not grid.persistent:
            continue  # an ordinary grid is inferred from this very extent
        elif extent is not None and fixed is None:
            for target in context.targets:
                held = residency(context, target)
                if held is not None and held.resident is not None and held.resident > extent:
                    severity = "warning"
                    notes = (f"{target} can hold {held.resident} blocks of {held.need} at once", *held.notes)
                    break
        elif fixed is not None and extent is not None:
            continue  # the grid is fixed and fits
        size = show(cap.extent)
        yield RULE.at(
            cap.span,
            f"`{cap.tensor.name}` has a place for {size} block{'s' * (size != '1')}, and there may be more",
            severity=severity,
            label="each block has one cell here" if severity == "info" else "past the end the result is dropped",
            related=(
                Related(cap.tensor.span, f"the extent is {size}"),
                *called_from(cap.calls),
                *unique((other.span, "and here") for other in others if not same_place(other.span, cap.span)),
            ),
            notes=notes or ("the launcher starts no more blocks than that",),
            help=f"give `{cap.tensor.name}` as many cells as the grid can have blocks" if severity != "info" else None,
        )

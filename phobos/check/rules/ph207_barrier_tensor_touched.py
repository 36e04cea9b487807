"""The kernel itself reads or writes the barrier's tensor.

## What it does
Reports a load, store or atomic on a tensor that is also given to `grid_barrier`, in functions too.

## Why it is bad
The barrier keeps its count there. A reset loses the arrivals of other blocks, and they wait for ever.

## Example
```ph bad
@persistent
kernel reset(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
  BAR[0] = 0
}
```

Write instead:

```ph good
@persistent
kernel reset(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
  }
  grid_barrier(BAR)
}
```

## Fix
Remove the access: the barrier leaves its tensor ready for the next launch. Count in a tensor of its own.

## Limits
Another parameter that shares its memory is seen at launch only.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import accesses_of, all_evaluated, barriers_of, called_from, places_of
from phobos.diagnostic import Diagnostic, Related, Span
from phobos.semantics import ir
from phobos.semantics.program import Program

RULE = Rule.of(__name__, "error")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    barriers = {barrier.tensor: barrier for barrier in reversed(barriers_of(program))}
    seen: set[tuple[str | None, int]] = set()
    for span, calls, tensor, how in touches(program):
        barrier = barriers.get(tensor)
        if barrier is None or (span.owner, span.start) in seen:
            continue
        seen.add((span.owner, span.start))
        yield RULE.at(
            span,
            f"`{tensor.name}` belongs to the grid barrier, and the kernel {how} it",
            label="the barrier counts arriving blocks here",
            related=(Related(barrier.span, "given to the barrier here"), *called_from(calls)),
            help="leave it alone: the barrier resets itself; use another tensor to count in",
        )


def touches(program: Program) -> Iterator[tuple[Span, tuple[Span, ...], ir.Tensor, str]]:
    """Every place where the kernel itself reads or writes a tensor: where, and how in words."""
    accesses, evaluated = accesses_of(program), all_evaluated(program)
    for place in places_of(program):
        statement = place.statement
        for access, stored in accesses[statement]:
            if isinstance(access.base, ir.Tensor):
                yield access.span, access.calls, access.base, "stores to" if stored else "reads"
        if isinstance(statement, ir.Atomic):
            yield statement.span, statement.calls, statement.tensor, "does an atomic on"
        for one in evaluated[statement]:
            if isinstance(one, ir.TensorRef):
                yield one.span, one.calls, one.tensor, "reads"

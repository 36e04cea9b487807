"""A loop loads the same cells in every round.

## What it does
Notes a slice of a tensor that does not change with the rounds of the loop it is loaded in, while nothing in
the loop stores to that tensor.

## Why it is bad
The load can stand before the loop; on the device every round pays for it again.

## Example
```ph bad
kernel scale(X: tensor<f32>[M, N], S: tensor<f32>[1, 64]) {
  let p = ctx.block.x
  for t in range(0, N, 64) {
    X[p :+ 1, t :+ 64] = X[p :+ 1, t :+ 64] * S[0 :+ 1, 0 :+ 64]
  }
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[M, N], S: tensor<f32>[1, 64]) {
  let p = ctx.block.x
  var s = S[0 :+ 1, 0 :+ 64]
  for t in range(0, N, 64) {
    X[p :+ 1, t :+ 64] = X[p :+ 1, t :+ 64] * s
  }
}
```

## Fix
Copy it into a `var` before the loop.

## Limits
Slices of more than 4096 cells are not reported: they may not fit where they would be kept. Nor is a `let` view from
before the loop, though each use of it reads again.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import accesses_of, blocks, called_from, places_of
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.semantics.values import values_of

RULE = Rule.of(__name__, "info")
MOST_CELLS = 4096


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    values = values_of(program)
    touched: dict[ir.Statement, set[ir.Tensor]] = {}
    seen: set[tuple[str | None, int]] = set()
    accesses = accesses_of(program)
    for place in places_of(program):
        loops = [one for one in place.inside if isinstance(one, (ir.For, ir.While))]
        if not loops:
            continue
        loop = loops[-1]
        known = values.loops.get(loop)
        if known is None or (known.trips is not None and known.trips.constant == 1):
            continue
        for access, stored in accesses[place.statement]:
            tensor = access.base
            if stored or not isinstance(tensor, ir.Tensor) or access.is_point:
                continue
            if loop not in touched:
                touched[loop] = _changed(program, loop)
            key = (access.span.owner, access.span.start)
            if tensor in touched[loop] or key in seen or not _small(access):
                continue
            knowledge = values.knowledge
            if all(
                knowledge.is_invariant(values.poly(part), known.index)
                and not any(values.poly(part).mentions(kind) for kind in ("load", "atomic", "unknown"))
                for sub in access.subs
                if isinstance(sub, ir.SliceSub)
                for part in (sub.first, sub.length)
            ):
                seen.add(key)
                yield RULE.at(
                    access.span,
                    f"the same cells of `{tensor.name}` are loaded in every round",
                    label="does not change with the loop",
                    related=(Related(loop.keyword, "this loop"), *called_from(access.calls)),
                    help="copy them into a `var` before the loop",
                )


def _small(access: ir.Access) -> bool:
    cells = 1
    for sub in access.subs:
        if isinstance(sub, ir.SliceSub):
            cells *= sub.static if sub.static is not None else MOST_CELLS + 1
    return cells <= MOST_CELLS


def _changed(program: Program, loop: ir.Statement) -> set[ir.Tensor]:
    """The tensors that a loop's body stores to, in it or (where blocks meet at a barrier) in others."""
    out: set[ir.Tensor] = set()
    barrier = False
    stack = [loop]
    while stack:
        statement = stack.pop()
        barrier = barrier or isinstance(statement, ir.Barrier)
        if isinstance(statement, ir.Store) and isinstance(statement.access.base, ir.Tensor):
            out.add(statement.access.base)
        elif isinstance(statement, ir.Atomic):
            out.add(statement.tensor)
        for block in blocks(statement):
            stack.extend(block.statements)
    return set(program.tensors.values()) if barrier else out

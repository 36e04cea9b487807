"""A loop loads the same cells in every round.

## What it does
Notes a slice of a tensor that does not change with the rounds of the loop it is loaded in, while nothing in
the loop stores to that tensor. A `let` view is loaded where it is used, wherever it was named.

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
Slices of more than 4096 cells are not reported: they may not fit where they would be kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import Place, accesses_of, all_evaluated, blocks, called_from, places_of
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.semantics.values import Values, values_of

RULE = Rule.of(__name__, "info")
MOST_CELLS = 4096


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    values = values_of(program)
    touched: dict[ir.Statement, set[ir.Tensor]] = {}
    seen: set[object] = set()
    accesses = accesses_of(program)
    views = {one.statement.variable: one for one in places_of(program) if isinstance(one.statement, ir.DefineView)}
    for place in places_of(program):
        loops = [one for one in place.inside if isinstance(one, (ir.For, ir.While))]
        if not loops:
            continue
        loop = loops[-1]
        known = values.loops.get(loop)
        if known is None or (known.trips is not None and known.trips.constant == 1):
            continue
        loaded: list[tuple[ir.Access, ir.Access | ir.Expression, Place | None]] = [
            (access, access, None) for access, stored in accesses[place.statement] if not stored
        ]
        for one in all_evaluated(program)[place.statement]:
            view = views.get(one.variable) if isinstance(one, ir.VariableRef) else None
            if view is not None and isinstance(view.statement, ir.DefineView) and loop not in view.inside:
                loaded.append((view.statement.access, one, view))
        for access, use, view in loaded:
            tensor = access.base
            if not isinstance(tensor, ir.Tensor) or access.is_point:
                continue
            if loop not in touched:
                touched[loop] = _changed(program, loop)
            key = (use.span.owner, use.span.start) if view is None else (view.statement, loop)
            if tensor in touched[loop] or key in seen or not _small(access):
                continue
            if view is None and not _stays(values, access, known.index):
                continue
            seen.add(key)
            named = () if view is None else (Related(access.span, "a view of them, which each use of it loads"),)
            yield RULE.at(
                use.span,
                f"the same cells of `{tensor.name}` are loaded in every round",
                label="does not change with the loop",
                related=(*named, Related(loop.keyword, "this loop"), *called_from(use.calls)),
                help="copy them into a `var` before the loop",
            )


def _stays(values: Values, access: ir.Access, loop: int) -> bool:
    """Whether the rounds of a loop do not change what an access touches."""
    return all(
        values.knowledge.is_invariant(values.poly(part), loop)
        and not any(values.poly(part).mentions(kind) for kind in ("load", "atomic", "unknown"))
        for sub in access.subs
        if isinstance(sub, ir.SliceSub)
        for part in (sub.first, sub.length)
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

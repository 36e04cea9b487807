"""A persistent kernel gives every block one tile, whatever the number of blocks.

## What it does
Reports a `@persistent` kernel whose stores depend on the block index, while neither the grid's extent nor
an atomic decides what is done. Once a kernel, at its first such store. A slot per block, as in `P[p :+ 1]`, does
not count.

## Why it is bad
The card decides how many blocks a persistent grid has. With fewer than there are tiles the rest is never
done; with more the last ones do nothing.

## Example
```ph bad
@persistent
kernel one(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 256 :+ 256] = X[p * 256 :+ 256] + 1.0
}
```

Write instead:

```ph good
@persistent
kernel one(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 256, N, ctx.blocks.x * 256) {
    X[t :+ 256] = X[t :+ 256] + 1.0
  }
}
```

## Fix
Stride over the work by the grid, or take `@persistent` away.

## Limits
That the host always launches exactly one block per tile cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.reach import Reach, atomics_with_results, decisions
from phobos.check.rule import Context, Rule
from phobos.check.strides import grid_constants
from phobos.check.walk import called_from, every
from phobos.diagnostic import Diagnostic
from phobos.semantics import ir
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program
from phobos.semantics.values import values_of

RULE = Rule.of(__name__, "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    if not program.is_persistent or grid_decides(program):
        return
    for store in owned_stores(program):
        yield RULE.at(
            store.access.span,
            f"every block of `{program.name}` does {_share(program, store)}, however many blocks there are",
            label="the block index alone says which cells are done",
            related=called_from(store.calls),
            notes=("the card decides how many blocks a persistent grid has: fewer than tiles leave the rest undone",),
            help="stride over the work: `for t in range(ctx.block.x * T, N, ctx.blocks.x * T)`; "
            "or take `@persistent` away",
        )
        return


def _share(program: Program, store: ir.Store) -> str:
    values = values_of(program)
    firsts = (sub.index if isinstance(sub, ir.PointSub) else sub.first for sub in store.access.subs)
    walks = any(values.loop_of(atom) is not None for first in firsts for atom in values.poly(first).atoms)
    return "the same share of the work" if walks else "one tile"


def grid_decides(program: Program) -> bool:
    """Whether the number of blocks, or what an atomic returned, decides what is done anywhere."""
    constants = grid_constants(program)
    reach = Reach(
        program,
        lambda one: isinstance(one, ir.GridExtent) or (isinstance(one, ir.ConstantRef) and one.constant in constants),
        atomics_with_results(program),
    )
    return any(reach.holds(use.statement, use.expression) for use in decisions(program))


def owned_stores(program: Program) -> Iterator[ir.Store]:
    """Stores to tensors at places that depend on the block index and are no slot of the block."""
    reach = Reach(program, lambda one: isinstance(one, ir.BlockIndex) and one.axis == 0)
    values = values_of(program)
    index = Poly.atom("block", 0)
    for store in every(program, ir.Store):
        if not isinstance(store.access.base, ir.Tensor):
            continue
        for sub in store.access.subs:
            first = sub.index if isinstance(sub, ir.PointSub) else sub.first
            if not reach.holds(store, first):
                continue
            slot = values.poly(first) == index and (isinstance(sub, ir.PointSub) or sub.static == 1)
            if not slot:
                yield store
                break

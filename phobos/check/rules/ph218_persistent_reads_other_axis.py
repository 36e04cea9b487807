"""A persistent kernel reads a grid axis that it does not have.

## What it does
Reports axis y or z of `ctx.block`, `ctx.blocks` or `program_id` in a `@persistent` kernel without a
barrier (with one it is PH202): an error when other indices would do what index 0 leaves out, a warning otherwise.

## Why it is bad
A persistent grid has one dimension. The index is always 0 and the extent 1, so all work but the first row is
left out.

## Example
```ph bad
@persistent
kernel rows(X: tensor<f32>[M, N]) {
  let row = ctx.block.y
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[row :+ 1, t :+ 64] = X[row :+ 1, t :+ 64] + 1.0
  }
}
```

Write instead:

```ph good
@persistent
kernel rows(X: tensor<f32>[M, N]) {
  for row in range(0, M) {
    for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
      X[row :+ 1, t :+ 64] = X[row :+ 1, t :+ 64] + 1.0
    }
  }
}
```

## Fix
Derive both indices from `ctx.block.x`, by `/` and `%`, or loop over one of them.

## Limits
None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.effects import EXITS, effective
from phobos.check.reach import Reach, Use, decisions
from phobos.check.rule import Context, Rule
from phobos.check.rules.ph202_barrier_on_multidimensional_grid import other_axes
from phobos.check.walk import barriers_of, blocks, called_from, same_place, unique
from phobos.diagnostic import Diagnostic
from phobos.semantics import ir
from phobos.semantics.concrete import truth
from phobos.semantics.poly import Atom
from phobos.semantics.program import Program
from phobos.semantics.values import Values, values_of
from phobos.semantics.walking import statements_of

RULE = Rule.of(__name__, "error", "warning")
MOST_INDICES = 9  # of the axis that are asked what they would do
NOTHING = ir.Block(())


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    if not program.is_persistent or barriers_of(program):
        return
    uses = other_axes(program)
    if not uses:
        return
    reach = Reach(program, lambda one: isinstance(one, (ir.BlockIndex, ir.GridExtent)) and one.axis > 0)
    selects = any(reach.holds(use.statement, use.expression) and _matters(program, use) for use in decisions(program))
    first = uses[0]
    what = "the index is always 0" if isinstance(first, ir.BlockIndex) else "the extent is always 1"
    yield RULE.at(
        first.span,
        f"`{program.name}` is persistent, so its grid has no axis {'xyz'[first.axis]}",
        severity="error" if selects else "warning",
        label=what + (", and it selects the work: the rest is never done" if selects else ""),
        related=called_from(first.calls)
        + unique((use.span, "and here") for use in uses[1:] if not same_place(use.span, first.span)),
        help="derive both indices from `ctx.block.x` by `/` and `%`, or loop over one of them",
    )


def _matters(program: Program, use: Use) -> bool:
    """Whether a decision leaves work out: what it lets the one index that there is do is no work left out."""
    has_a_say = effective(program)
    if use.statement not in has_a_say:
        return False
    if use.kind == "subscript":
        return True
    taken, left_out = ([one for one in arm if one in has_a_say] for arm in _arms(values_of(program), use.statement))
    if any(isinstance(one, (ir.Store, ir.Atomic, ir.Assign)) for one in left_out):
        return True
    # The others would have gone on, or with another value.
    return any(isinstance(one, (ir.Assign, ir.Store, *EXITS)) and not _stores(one) for one in taken)


def _stores(statement: ir.Statement) -> bool:
    return isinstance(statement, ir.Store) and isinstance(statement.access.base, ir.Tensor)


def _arms(values: Values, statement: ir.Statement) -> tuple[list[ir.Statement], list[ir.Statement]]:
    """What stands under a statement: what index 0 of the axis may come to, and what another may that it does not."""
    then, otherwise = ([*statements_of(block)] for block in (*blocks(statement), NOTHING, NOTHING)[:2])
    if not isinstance(statement, ir.If):
        return [*then, *otherwise], [*then, *otherwise]
    condition = values.condition(statement.condition)
    alone, *others = (truth(condition, _axes_at(index)) for index in range(MOST_INDICES))
    others = [holds for holds in others if holds is None or holds != alone]
    return (
        [*(then if alone is not False else ()), *(otherwise if alone is not True else ())],
        [*(then if {True, None} & {*others} else ()), *(otherwise if {False, None} & {*others} else ())],
    )


def _axes_at(index: int) -> dict[Atom, int]:
    """The axes that a persistent grid does not have, at an index of the least grid that has it."""
    return {("block", 1): index, ("block", 2): index, ("blocks", 1): index + 1, ("blocks", 2): index + 1}

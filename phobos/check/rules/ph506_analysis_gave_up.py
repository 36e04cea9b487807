"""Whether two blocks meet here, or all come to this barrier, could neither be shown nor excluded.

## What it does
Notes accesses whose cells depend on loaded data, on an atomic's result or on something that is no sum of
products, and pairs that are apart only under a condition on the grid, which is then named. And barriers under a
condition on the block index that parted no blocks in any launch that was tried.

## Why it is bad
Silence would look like a proof.

## Example
```ph bad
@persistent
kernel scatter(X: tensor<f32>[N], I: tensor<i32>[N], Y: tensor<f32>[N]) {
  for t in range(ctx.block.x, N, ctx.blocks.x) {
    Y[I[t]] = X[t]
  }
}
```

Write instead:

```ph good
@persistent
kernel copy(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  for t in range(ctx.block.x, N, ctx.blocks.x) {
    Y[t] = X[t]
  }
}
```

## Fix
`phobos run --device cpu --detect races` looks at a run with real data.

## Limits
Sizes given by `--set` or `sizes` make more of these decidable.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.divergence import chain, unfounded
from phobos.check.races import elsewhere, of_kind, other_site, told_of
from phobos.check.rule import Context, Rule
from phobos.check.walk import same_place, unique
from phobos.diagnostic import Diagnostic
from phobos.semantics.conflicts import Conflict
from phobos.semantics.footprints import Footprint

RULE = Rule.of(__name__, "info")


def check(context: Context) -> Iterator[Diagnostic]:
    by_tensor: dict[object, list[tuple[Conflict, Footprint, Footprint]]] = {}
    spoken_of = {conflict.first.access.base.name for conflict in told_of(context.program)}
    for found in of_kind(context.program, "unknown"):
        by_tensor.setdefault(found[1].access.base, []).append(found)
    for (conflict, later, earlier), *more in by_tensor.values():
        name = later.access.base.name
        also = unique((one.access.span, "nor here") for _, one, _ in more)
        yield RULE.at(
            later.access.span,
            f"could not tell whether two blocks meet in `{name}` here",
            label=_label(conflict, earlier),
            related=other_site(later, earlier, _other(conflict, earlier)) + also,
            notes=tuple(dict.fromkeys(one.reason for one, *_ in more if one.limit)),
            help="`phobos run --device cpu --detect races` looks at a run with real data",
        )
    for told, program in elsewhere(context):
        for conflict, later, earlier in of_kind(program, "unknown"):
            if later.access.base.name in spoken_of:
                continue
            spoken_of.add(later.access.base.name)
            yield RULE.at(
                later.access.span,
                f"could not tell whether two blocks meet in `{later.access.base.name}` here",
                label=_label(conflict, earlier),
                related=other_site(later, earlier, _other(conflict, earlier)),
                notes=(f"{told}; at the default constants the blocks keep apart",),
                help="`phobos run --device cpu --detect races` looks at a run with real data",
            )
    for divergence in unfounded(context.program):
        yield RULE.at(
            divergence.barrier.span,
            "could not tell whether all blocks come to this grid barrier",
            label="index arithmetic may part them, and did not in any small launch that was tried",
            related=chain(divergence, "blocks may differ here"),
            help="`phobos run --device cpu` looks at a run with real sizes",
        )


def _label(conflict: Conflict, earlier: Footprint) -> str:
    """What is said at the later access: the reason, where it is not the earlier one's."""
    return "the other access may come to the same cell" if _is_about(conflict, earlier) else conflict.reason


def _other(conflict: Conflict, earlier: Footprint) -> str:
    return f"the other access: {conflict.reason}" if _is_about(conflict, earlier) else "the other access"


def _is_about(conflict: Conflict, earlier: Footprint) -> bool:
    """Whether the reason is about the earlier access, at a place of its own."""
    later = conflict.second if conflict.first is earlier else conflict.first
    return conflict.of is earlier and not same_place(earlier.access.span, later.access.span)

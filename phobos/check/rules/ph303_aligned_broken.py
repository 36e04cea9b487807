"""A promise of `@aligned` is false for an extent that is known already.

## What it does
Reports a promised dimension whose extent is a literal or a constant and no whole number of the tile. Lists
the values that break it: an error when the default does, a warning when only others of the search space do.

## Why it is bad
Masks are left out because of the promise: cells past the end would be read and overwritten.

## Example
```ph bad
@aligned(N = 64)
@autotune(N in [1000])
kernel fixed(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

Write instead:

```ph good
@aligned(N = 64)
@autotune(N in [1024])
kernel fixed(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
Promise a tile that divides the extent, or take away the values that it does not divide.

## Limits
Extents known only at launch are checked there.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics import ir
from phobos.semantics.program import Program, Promise

RULE = Rule.of(__name__, "error", "warning")
MOST = 6  # offending values that are listed


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    for promise in program.promises:
        yield from _broken(program, promise)


def _broken(program: Program, promise: Promise) -> Iterator[Diagnostic]:
    tiles = promise.constant.choices if promise.constant is not None else (promise.tile,)
    extents, where = _extents(program, promise.dim)
    if extents is None or where is None:
        return
    pairs = [(extent, tile) for extent in extents for tile in tiles if tile > 0 and extent % tile != 0]
    if promise.constant is not None and promise.constant.name == promise.dim:
        return
    if not pairs:
        return
    default = promise.tile > 0 and extents[0] % promise.tile != 0
    several = len(extents) > 1 or len(tiles) > 1
    listed = ", ".join(
        f"{promise.dim} = {extent}" + (f" with {promise.constant.name} = {tile}" if promise.constant else "")
        for extent, tile in pairs[:MOST]
    ) + (f" and {len(pairs) - MOST} more" if len(pairs) > MOST else "")
    extent, tile = (extents[0], promise.tile) if default else pairs[0]
    yield RULE.at(
        promise.key,
        f"`{promise.dim}` is promised to be a whole number of {tile}, but it is {extent}"
        if default
        else f"the search space breaks the promise that `{promise.dim}` is a whole number of tiles",
        severity="error" if default else "warning",
        label=f"{extent} = {extent // tile} x {tile} + {extent % tile}",
        related=(where,),
        notes=(f"broken by {listed}",) if several else (),
        help="promise a tile that divides the extent" + (", or drop these values" if several else ""),
    )


def _extents(program: Program, name: str) -> tuple[tuple[int, ...] | None, Related | None]:
    """What an extent called `name` can be, the value of this program first; where it is said."""
    sizes = dict(program.settings.sizes)
    for tensor in program.tensors.values():
        for extent in tensor.extents:
            if isinstance(extent, ir.Constant) and extent.name == name:
                others = tuple(choice for choice in extent.choices if choice != extent.value)
                return (extent.value, *others), Related(extent.span, f"`{name}` takes its values here")
            if isinstance(extent, ir.Dim) and extent.name == name and name in sizes:
                return (sizes[name],), Related(extent.span, f"`{name}` = {sizes[name]} is given for this check")
    return None, None

"""An offset can pass 2^31 where a compiler counts in 32 bits.

## What it does
Notes an access whose offset in its tensor may exceed 2^31 - 1 at sizes that are known: static extents, and
those that `sizes` or `--set` fix. Once for each tensor.

## Why it is bad
This project computes offsets in 64 bits. The public compiler uses 32 bits unless told otherwise, and wraps.

## Example
```ph bad
kernel clear(X: tensor<f32>[65536, 65536]) {
  let p = ctx.block.x
  X[p :+ 1, 0 :+ 64] = 0.0
}
```

Write instead:

```ph good
kernel clear(X: tensor<f32>[32768, 32768]) {
  let p = ctx.block.x
  X[p :+ 1, 0 :+ 64] = 0.0
}
```

## Fix
Nothing here. Elsewhere, ask for 64-bit indices or split the tensor.

## Limits
Nothing is said of extents that are known only at launch.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import accesses_of, places_of
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics import ir
from phobos.semantics.values import values_of

RULE = Rule.of(__name__, "info")
LIMIT = 2**31


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    values = values_of(program)
    cells: dict[ir.Tensor, int] = {}
    for tensor in program.tensors.values():
        product = 1
        for axis in range(len(tensor.extents)):
            product *= values.extent(tensor, axis).constant or 0
        if product > LIMIT:
            cells[tensor] = product
    if not cells:
        return
    accesses = accesses_of(program)
    for place in places_of(program):
        for access, _ in accesses[place.statement]:
            if isinstance(access.base, ir.Tensor) and access.base in cells:
                count = cells.pop(access.base)
                yield RULE.at(
                    access.span,
                    f"`{access.base.name}` has {count} cells: an offset in 32 bits would overflow",
                    label="offsets here are counted in 64 bits",
                    related=(Related(access.base.span, "declared here"),),
                    notes=("a compiler that counts in 32 bits wraps at 2147483648",),
                )

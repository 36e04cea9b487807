"""A promised tile is no whole number of 16-byte accesses.

## What it does
Notes a promise on the last dimension of a tensor whose tile, in bytes, is no multiple of 16.

## Why it is bad
Loads and stores of 16 bytes need the row pitch to be a multiple of 16; narrower ones reach less of the
memory's speed.

## Example
```ph bad
@aligned(N = 2)
kernel pairs(X: tensor<f32>[M, N]) {
  let p = ctx.block.x
  X[p :+ 1, 0 :+ 2] = X[p :+ 1, 0 :+ 2] * 2.0
}
```

Write instead:

```ph good
@aligned(N = 4)
kernel quads(X: tensor<f32>[M, N]) {
  let p = ctx.block.x
  X[p :+ 1, 0 :+ 4] = X[p :+ 1, 0 :+ 4] * 2.0
}
```

## Fix
Promise a multiple of 16 bytes where that is true.

## Limits
None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.promises import named
from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic, Related
from phobos.language.scalars import scalar

RULE = Rule.of(__name__, "info")
WIDE_BYTES = 16


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    for promise in program.promises:
        for tensor in program.tensors.values():
            if promise.tile <= 0 or not named(tensor.extents[-1], promise.dim) or tensor.dtype == "bool":
                continue
            size = scalar(tensor.dtype).bytes
            if promise.tile * size % WIDE_BYTES:
                enough = WIDE_BYTES // size
                yield RULE.at(
                    promise.value,
                    f"rows of `{tensor.name}` are promised in steps of {promise.tile * size} bytes, "
                    f"and wide accesses need {WIDE_BYTES}",
                    label=f"{promise.tile} x {size} bytes",
                    related=(Related(tensor.span, f"elements of {size} bytes"),),
                    help=f"a multiple of {enough} would allow {WIDE_BYTES}-byte accesses, where that is true",
                )
                break

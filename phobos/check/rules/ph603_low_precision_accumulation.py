"""A long sum is kept in 16 bits.

## What it does
Notes a `+=` of a `dot` or a row sum, in a loop, into a variable of f16 or bf16.

## Why it is bad
Each step rounds to 8 or 11 bits. After some hundred steps small terms are lost entirely.

## Example
```ph bad
kernel sums(X: tensor<f16>[M, N], Y: tensor<f16>[M, 1]) {
  let p = ctx.block.x
  var sum: tile<f16>[1, 1] = 0.0
  for t in range(0, N, 64) {
    sum += rowsum(X[p :+ 1, t :+ 64])
  }
  Y[p :+ 1, 0 :+ 1] = sum
}
```

Write instead:

```ph good
kernel sums(X: tensor<f16>[M, N], Y: tensor<f16>[M, 1]) {
  let p = ctx.block.x
  var sum: tile<f32>[1, 1] = 0.0
  for t in range(0, N, 64) {
    sum += rowsum(f32(X[p :+ 1, t :+ 64]))
  }
  Y[p :+ 1, 0 :+ 1] = sum
}
```

## Fix
Accumulate in f32 and convert once, at the store.

## Limits
A loop of at most 4 rounds is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import called_from, inside, places_of
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics import ir
from phobos.semantics.values import values_of

RULE = Rule.of(__name__, "info")
SHORT = 4  # rounds that lose little
LOW = ("f16", "bf16")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    values = values_of(program)
    seen: set[ir.Variable] = set()
    for place in places_of(program):
        statement = place.statement
        if not isinstance(statement, ir.Assign) or not _adds(statement):
            continue
        variable = statement.variable
        dtype = getattr(variable.type, "dtype", "")
        loops = [one for one in place.inside if isinstance(one, (ir.For, ir.While))]
        if dtype not in LOW or not loops or variable in seen:
            continue
        rounds = values.loop(loops[-1]).trips if loops[-1] in values.loops else None
        if rounds is not None and rounds.constant is not None and rounds.constant <= SHORT:
            continue
        seen.add(variable)
        yield RULE.at(
            statement.span,
            f"`{variable.name}` is summed up in {dtype}, which rounds at every step",
            label=f"{8 if dtype == 'bf16' else 11} bits of precision",
            related=(Related(variable.span, f"declared as {dtype}"), *called_from(statement.calls)),
            help="sum in f32 and convert once, at the store",
        )


def _adds(statement: ir.Assign) -> bool:
    if statement.op in ("+", "-"):
        return True
    found = statement.value
    while isinstance(found, ir.Convert):
        found = found.operand
    if statement.op is not None or not isinstance(found, ir.BinaryOp) or found.op not in ("+", "-"):
        return False
    return any(isinstance(one, ir.VariableRef) and one.variable is statement.variable for one in inside(found))

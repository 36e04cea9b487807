"""`@tensorcore` has no effect here.

## What it does
Reports a kernel whose `dot` cannot run on tensor cores, with the reason and the nearest shape that would.

## Why it is bad
The product runs many times slower than what was asked for, without a word.

## Example
```ph bad
@tensorcore
kernel mm(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  let p = ctx.block.x
  var acc: tile<f32>[6, 6] = 0.0
  for k in range(0, K, 6) {
    acc += dot(A[p * 6 :+ 6, k :+ 6], B[k :+ 6, 0 :+ 6])
  }
  C[p * 6 :+ 6, 0 :+ 6] = acc
}
```

Write instead:

```ph good
@tensorcore
kernel mm(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
  let p = ctx.block.x
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 64) {
    acc += dot(A[p * 64 :+ 64, k :+ 64], B[k :+ 64, 0 :+ 64])
  }
  C[p * 64 :+ 64, 0 :+ 64] = acc
}
```

## Fix
Take the shape that the message names.

## Limits
What the emitter of this project does is reported; another compiler may decide otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.check.walk import all_expressions, called_from
from phobos.diagnostic import Diagnostic, Related, Span
from phobos.semantics import ir
from phobos.semantics.program import Program

RULE = Rule.of(__name__, "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    attribute = program.flags.get("tensorcore")
    if attribute is None or any(problem.severity == "error" for problem in program.problems):
        return
    span = Span(None, attribute.start, attribute.end)
    if not has_products(program):
        yield RULE.at(
            span,
            "`@tensorcore` has no effect: there is no product in the kernel",
            label="nothing to run on tensor cores",
            help="remove it, or compute with `dot` or `dot_t`",
        )
        return
    from phobos.lowering.decide import decisions_of

    for dot, product in decisions_of(program).products.items():
        if product.against is not None:
            yield RULE.at(
                span,
                f"`@tensorcore` has no effect on this product: {product.against.why}",
                label="runs on the ordinary units",
                related=(Related(dot.span, product.against.what), *called_from(dot.calls)),
                help=product.against.instead,
            )
            return


def has_products(program: Program) -> bool:
    """Whether a `dot` or `dot_t` stands in the kernel."""
    return any(isinstance(one, ir.BuiltinCall) and one.name in ("dot", "dot_t") for one in all_expressions(program))

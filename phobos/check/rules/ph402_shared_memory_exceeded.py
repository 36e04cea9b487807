"""The tiles that threads must share take more shared memory than a block may have.

## What it does
Counts the declared tiles that other threads must read, that is operands of `dot`, `dot_t`, `transpose`, `cumsum`,
`gather`, `flat`, and subscripted tiles, while they are live. Reports more than 48 KiB without `@dynshared`, and
more than a target's limit with it. A note where only other constants of the search space pass the limit.

## Why it is bad
The kernel does not compile, or does not launch.

## Example
```ph bad
kernel big(A: tensor<f32>[M, N], B: tensor<f32>[N, M]) {
  var a: tile<f32>[128, 128] = 0.0
  let p = ctx.block.x
  a = A[p * 128 :+ 128, 0 :+ 128]
  B[0 :+ 128, p * 128 :+ 128] = transpose(a)
}
```

Write instead:

```ph good
kernel small(A: tensor<f32>[M, N], B: tensor<f32>[N, M]) {
  var a: tile<f32>[64, 64] = 0.0
  let p = ctx.block.x
  a = A[p * 64 :+ 64, 0 :+ 64]
  B[0 :+ 64, p * 64 :+ 64] = transpose(a)
}
```

## Fix
Use smaller tiles, or `@dynshared`, which allows as much as the device has.

## Limits
Tiles used only elementwise, in row reductions or as the target of `+= dot` stay in registers and do not
count.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic, Edit, Fix, Related, Span
from phobos.language.scalars import scalar
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.value import value

RULE = Rule.of(__name__, "error", "info")
STATIC_BYTES = 48 * 1024


@value
class Live:
    """Declared tiles that are in shared memory at once, in the order of the text, with their bytes."""

    tiles: tuple[tuple[ir.Variable, int], ...]
    bytes: int


def check(context: Context) -> Iterator[Diagnostic]:
    program = context.program
    if any(problem.severity == "error" for problem in program.problems):
        return
    limit, limited_by = _limit(context)
    live = most_live(program, limit)
    if live.bytes > limit:
        yield _finding(program, live, limit, limited_by)
        return
    choices = {c.name: max(c.choices) for c in program.constants.values() if len(c.choices) > 1}
    if not choices or context.at is None or not _has_tiles(program):
        return
    other = context.at(choices)
    if any(problem.severity == "error" for problem in other.problems):
        return
    live = most_live(other, limit)
    if live.bytes > limit:
        variable, _ = _passing(live, limit)
        where = ", ".join(f"{name} = {number}" for name, number in choices.items())
        yield RULE.at(
            variable.span,
            f"at {where} the tiles take {live.bytes} bytes of shared memory; {limit} is {limited_by}",
            severity="info",
            label="passes the limit there, not at the default constants",
            help="`@dynshared` allows more" if "dynshared" not in program.flags else None,
        )


def _limit(context: Context) -> tuple[int, str]:
    """The bytes a block may have, and why no more."""
    if "dynshared" not in context.program.flags:
        return STATIC_BYTES, "the limit without `@dynshared`"
    if not context.targets:
        return 1 << 62, ""
    from phobos.codegen.cards import target

    return min((target(name).limits.shared_bytes_per_cta, f"the limit of {name}") for name in context.targets)


def most_live(program: Program, limit: int = 0) -> Live:
    """The tiles in shared memory where they take the most; empty where all tiles together cannot pass `limit`."""
    if sum(_bytes(variable.type) for variable in program.variables) <= limit:
        return Live((), 0)
    from phobos.lowering.decide import decisions_of, total_bytes

    tiles = decisions_of(program).most_tiles
    order = {variable: number for number, variable in enumerate(program.variables)}
    return Live(tuple(sorted(tiles, key=lambda one: order.get(one[0], 0))), total_bytes(tiles))


def _bytes(type_: ir.Type) -> int:
    if not isinstance(type_, ir.TileT) or not all(isinstance(length, int) for length in type_.shape):
        return 0
    return prod(length for length in type_.shape if isinstance(length, int)) * scalar(type_.dtype).bytes


def _has_tiles(program: Program) -> bool:
    return any(isinstance(variable.type, ir.TileT) for variable in program.variables)


def _passing(live: Live, limit: int) -> tuple[ir.Variable, int]:
    """The declaration with which the sum passes the limit, and the sum."""
    total = 0
    for variable, size in live.tiles:
        total += size
        if total > limit:
            return variable, size
    return live.tiles[-1]


def _finding(program: Program, live: Live, limit: int, limited_by: str) -> Diagnostic:
    variable, size = _passing(live, limit)
    fix = None
    if "dynshared" not in program.flags:
        start = program.kernel.start
        fix = Fix("add `@dynshared`", "unsafe", (Edit(Span(None, start, start), "@dynshared\n"),))
    return RULE.at(
        variable.span,
        f"the tiles of `{program.name}` take {live.bytes} bytes of shared memory; {limit} is {limited_by}",
        label=f"{size} bytes, which passes the limit" if len(live.tiles) > 1 else f"{size} bytes",
        related=tuple(Related(v.span, f"{count} bytes") for v, count in live.tiles if v is not variable),
        help="use smaller tiles"
        + ("; or `@dynshared`, which allows what the device has" if "dynshared" not in program.flags else ""),
        fix=fix,
    )

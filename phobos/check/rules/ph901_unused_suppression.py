"""A comment silences a rule that says nothing there.

## What it does
Reports a code in `// phobos: ignore[..]` or `ignore-file[..]` that silenced no finding, and an
`// phobos: assume uniform(x)` whose `x` is proved to be the same for all blocks.

## Why it is bad
What it was for is gone. Left in place it silences the next finding unseen.

## Example
```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0  // phobos: ignore[PH501] blocks keep to their tiles
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
```

## Fix
`--fix` removes it.

## Limits
Rules that are not selected are not counted as unused.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context, Rule
from phobos.diagnostic import Diagnostic
from phobos.semantics.levels import Level
from phobos.semantics.uniformity import Assumption, uniformity_of

RULE = Rule.of(__name__, "warning")


def check(context: Context) -> Iterator[Diagnostic]:
    """Assumptions of uniformity that the analysis does not need; suppressions are judged file by file."""
    by_place: dict[tuple[str | None, int], list[Assumption]] = {}
    for assumption in uniformity_of(context.program).assumptions:
        span = assumption.statement.span
        by_place.setdefault((span.owner, span.start), []).append(assumption)
    for assumptions in by_place.values():
        if all(assumption.level <= Level.UNIFORM for assumption in assumptions):
            yield RULE.at(
                assumptions[0].statement.span,
                "this assumption is not needed: the value is the same for all blocks anyway",
                label="proved without it",
                help="remove it, so that the reference runtime need not check it",
            )

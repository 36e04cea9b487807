"""The text does not follow the grammar at this place.

## What it does
Reports the first token that cannot stand where it stands, and says what could. The parser then goes on
with the next statement, so that one file shows all its syntax errors at once.

## Why it is bad
Nothing can be said of a statement that cannot be read, and nothing of it runs.

## Example
```ph bad
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ ] = 0.0
}
```

Write instead:

```ph good
kernel scale(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p * 64 :+ 64] = 0.0
}
```

## Fix
Write what the message says was expected.

## Limits
Nesting deeper than 256 levels is reported here and not read further.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

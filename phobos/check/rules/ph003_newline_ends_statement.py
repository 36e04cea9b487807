"""A line ends a statement that was meant to go on.

## What it does
Reports a statement that does not parse because its line was broken after a name, a literal or a closing
bracket, and the next line begins with an operator, `else`, `{` or `)`.

## Why it is bad
A line end after such a token ends the statement, inside brackets too. The rest of the statement is then
read as one of its own.

## Example
```ph bad
kernel sum(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let p = ctx.block.x
  Y[p * 64 :+ 64] = X[p * 64 :+ 64]
    * 2.0
}
```

Write instead:

```ph good
kernel sum(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let p = ctx.block.x
  Y[p * 64 :+ 64] = X[p * 64 :+ 64] *
    2.0
}
```

## Fix
Break the line after the operator, the comma or the opening bracket. `--fix` moves the operator where that
is safe.

## Limits
A next line that parses by itself, such as `- 8`, is no syntax error; see PH004.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

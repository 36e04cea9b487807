"""Something that cannot change is assigned to.

## What it does
Reports an assignment to a `let`, a parameter, a loop variable, a constant, or through a view.

## Why it is bad
A `let` is bound once; a view is read-only; a loop counts by itself.

## Example
```ph bad
kernel total(X: tensor<f32>[N], Y: tensor<f32>[1]) {
  let sum = 0.0
  for i in range(0, N) {
    sum = sum + X[i]
  }
  Y[0] = sum
}
```

Write instead:

```ph good
kernel total(X: tensor<f32>[N], Y: tensor<f32>[1]) {
  var sum = 0.0
  for i in range(0, N) {
    sum = sum + X[i]
  }
  Y[0] = sum
}
```

## Fix
Make it a `var`; `--fix` does so for a `let` of a value.

## Limits
None known.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

"""A loop steps by zero or backwards, or something is divided by zero.

## What it does
Reports a constant step that is 0 or less, and a division or remainder by a constant 0.

## Why it is bad
`range` counts upwards only: with such a step it would never end. A division by zero is a fault.

## Example
```ph bad
kernel fill(X: tensor<f32>[N]) {
  for i in range(0, N, 0) {
    X[i] = 0.0
  }
}
```

Write instead:

```ph good
kernel fill(X: tensor<f32>[N]) {
  for i in range(0, N, 1) {
    X[i] = 0.0
  }
}
```

## Fix
Use a positive step. To go backwards, count upwards and subtract: `N - 1 - i`.

## Limits
Steps and divisors that are known only at launch are checked by the runtimes.
"""

from __future__ import annotations

from phobos.check.rule import Rule

RULE = Rule.of(__name__, "error")

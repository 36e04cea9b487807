"""What is known of a piece from the kinds of its tokens alone: how its node is made, or where it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phobos.value import value

DEPTH = 256
"""The deepest nesting of brackets, operators and blocks. Who walks a tree may rely on it."""

Step = tuple[Callable[..., Any], tuple[int, ...]]


@value
class Failure:
    """Where the first token stands that fits nowhere (the piece's length: at its end) and what would have fitted.

    `open` is the index of the bracket that is open there, -1 when none is.
    """

    at: int
    expected: frozenset[str]
    open: int


@value
class Shape:
    """How to build the node of a piece.

    Step `k` applies its function to earlier values: values 0.. are the tokens, then come the tokens of `added`
    (kind, index of the token it stands before), then the results of steps. `rest` is the first token not used.
    `depth` is the height of the tree; `steps` are empty when it is too deep. `chained` are the operators of
    chained comparisons, `targets` of assignments to something that cannot be assigned.
    """

    steps: tuple[Step, ...]
    added: tuple[tuple[str, int], ...]
    rest: int
    failure: Failure | None
    depth: int
    chained: tuple[int, ...]
    targets: tuple[int, ...]

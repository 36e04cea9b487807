"""Pieces of a file to nodes, by their *shape*; lark's LALR parser is asked once for each.

How a piece derives from the grammar depends on the kinds of its tokens alone. So lark is asked once for a
string of kinds, what it did is kept as a list of steps (`Shape`), and every later piece of those kinds is built
by taking the same steps on its own tokens. That holds for wrong pieces too: where the parse fails, what was
expected there, and which tokens to put in or leave out so that the rest still gives nodes, are part of the shape.
"""

from __future__ import annotations

import threading
from typing import Any

from phobos.syntax import memory
from phobos.syntax.shapes import Shape
from phobos.syntax.tokens import Token
from phobos.syntax.tree import SyntaxProblem

_KEPT_SHAPES = 20_000
_KEPT_LENGTH = 1_000  # longer pieces are not kept: they hardly come again


def shape_of(start: str, kinds: str) -> Shape:
    """The shape of a piece that begins with rule `start`. Learnt once, then remembered."""
    key = (start, kinds)
    shape = _shapes.get(key)
    if shape is None:
        with _lock:
            shape = _shapes.get(key)
            if shape is None:
                shape = _new_shape(key)
    return shape


def _new_shape(key: tuple[str, str]) -> Shape:
    global _new
    _new += 1
    shape = memory.recall(key)
    if shape is None:
        from phobos.syntax.learning import learn  # lark is imported only for what is new

        shape = learn(*key)
        memory.remember(key, shape)
    if len(key[1]) <= _KEPT_LENGTH:
        if len(_shapes) >= _KEPT_SHAPES:
            _shapes.clear()
        _shapes[key] = shape
    return shape


def make(shape: Shape, tokens: list[Token], end: int, problems: list[SyntaxProblem]) -> Any:
    """The node that `shape` makes of `tokens`; `end` is where an added token stands that comes after them all."""
    values: list[Any] = tokens
    if shape.added:
        values = tokens + [_added(index, tokens, end) for _, index in shape.added]
    else:
        values = tokens.copy()
    add = values.append
    for function, indices in shape.steps:
        add(function(problems, *[values[i] for i in indices]))
    return values[-1]


def _added(index: int, tokens: list[Token], end: int) -> Token:
    """An empty token. It stands where the gap begins: behind the token before it."""
    at = tokens[index - 1][1] if index else (tokens[0][0] if tokens else end)
    return at, at, ""


def prepare() -> None:
    """Load what the first new shape needs, 40 ms of work: for who would rather do that while nobody waits."""
    from phobos.syntax import learning

    with _lock:
        learning.parser()


def new_shapes() -> int:
    """How many shapes this process has met for the first time (or again, after forgetting it); for benchmarks."""
    return _new


_shapes: dict[tuple[str, str], Shape] = {}
_lock = threading.RLock()
_new = 0

"""What a name means where it stands: scopes inside scopes, the innermost first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from phobos.semantics import ir

Meaning = Union[ir.Variable, ir.Tensor, ir.ScalarParam, ir.Dim, ir.Constant, int, None]
"""An `int` is a symbol of a function bound to a static extent; `None` is a name whose definition was wrong."""


class Scope:
    """Names of one block. `outer` is the scope around it; a function's outermost has none."""

    __slots__ = ("names", "outer")

    def __init__(self, outer: Scope | None = None) -> None:
        self.names: dict[str, Meaning] = {}
        self.outer = outer

    def find(self, name: str) -> tuple[bool, Meaning]:
        """Whether the name is known, and what it means."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return True, scope.names[name]
            scope = scope.outer
        return False, None

    def all(self) -> Iterator[str]:
        scope: Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.outer

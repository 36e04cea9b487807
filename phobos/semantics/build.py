"""Tree to typed program: names, types, shapes, constants; functions inlined, effects put in order."""

from __future__ import annotations

from collections.abc import Mapping

from phobos.semantics.program import Program, Settings
from phobos.syntax import tree


def build(item: tree.Item, functions: Mapping[str, tree.Item], settings: Settings = Settings()) -> Program:
    """The program of a kernel item (or of a function by itself, its parameters taken as a kernel's).

    Raises ValueError when `item.node` is None. Never raises for a mistake of the user: those are `problems`.
    """
    raise NotImplementedError

"""How the project spells a value: a class of named fields that nobody changes.

`@value` is immutable to the type checker and cheap at run time. `dataclass(frozen=True)` would cost
twice as much to define and four times as much to construct, and `phobos check` pays for both on every
start. Values compare and hash by identity, so a fact can be keyed by the node it is about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def value(cls: type[T]) -> type[T]:
    """Make `cls` a value class: `__slots__`, `__init__` and `__repr__` from its annotations."""
    return dataclass(slots=True, eq=False)(cls)

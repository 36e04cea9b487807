"""When two questions about polynomials are one: a key in which loops are numbered as they appear.

Twenty loops of the same form ask the same things about twenty different round atoms; with this key each is proved
once. Values that hang on where they were computed have no such key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from phobos.semantics.poly import Poly

ROUND = re.compile(r"\('(round|at)', (\d+)\)")
PLACED = re.compile(r"'(?:var|expr|load|unsigned|atomic|op|wrap|trips|bool|left|unknown|thread)'")


def signature(*parts: Iterable[Poly] | str) -> str | None:
    """A key of the polynomials in their order; None where one holds a value that hangs on its place."""
    text = " ".join(part if isinstance(part, str) else repr([poly.key for poly in part]) for part in parts)
    if PLACED.search(text):
        return None
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"({match[1]} {numbers.setdefault(match[2], len(numbers))})"

    return ROUND.sub(number, text)

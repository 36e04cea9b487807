"""Where a value of a TOML text stands. The library's reader gives values and no places, so it is asked about beginnings
of the text: the first one that holds the value ends with the statement that gives it, however that is written.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any


def lines_of(text: str, keys: tuple[str, ...]) -> tuple[int, int]:
    """The first and the last line, from 1, of the statement from which on `text` (valid TOML) holds `keys`."""
    lines = text.split("\n")

    def ended(count: int) -> tuple[int, Mapping[str, Any]]:
        """The statement that line `count` belongs to: where it ends, and what the text holds up to there."""
        while True:
            try:
                return count, tomllib.loads("\n".join(lines[:count]) + "\n")
            except tomllib.TOMLDecodeError:
                count += 1
                if count > len(lines):
                    raise

    low, high = 0, len(lines)  # `low` lines do not hold it, `high` do
    while high - low > 1:
        middle = (low + high) // 2
        if _holds(ended(middle)[1], keys):
            high = middle
        else:
            low = middle
    return high, ended(high)[0]


def _holds(table: Any, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if not isinstance(table, Mapping) or key not in table:
            return False
        table = table[key]
    return True

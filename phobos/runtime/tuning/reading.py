"""What was read from a file of ours, field by field and by its type: anything may have become of it on the disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

NOT_OURS = (ValueError, KeyError, TypeError)  # what reading a record raises where it is none


def document(data: bytes) -> Any:
    """JSON. Raises ValueError for what is none, and for what no reader takes."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def field(kept: Mapping[str, Any], name: str, *kinds: type | None) -> Any:
    """A field that has one of these types, where True is no int, or is None where that is among them.

    Raises ValueError, KeyError, and TypeError where `kept` has no fields.
    """
    found = kept[name]
    if (None if found is None else type(found)) not in kinds:
        raise ValueError(f"{name} is {found!r}")
    return found


def whole_numbers(kept: Mapping[str, Any], name: str) -> dict[str, int]:
    """A field that has whole numbers by name. Raises what `field` raises."""
    found = field(kept, name, dict)
    return {key: field(found, key, int) for key in found}


def extents(kept: Mapping[str, Any], name: str) -> tuple[int, ...] | None:
    """A field that is a grid, or None. Raises what `field` raises."""
    found = field(kept, name, list, None)
    if found is None:
        return None
    if not 1 <= len(found) <= 3 or any(type(n) is not int or n < 0 for n in found):
        raise ValueError(f"{name} is {found!r}")
    return tuple(found)

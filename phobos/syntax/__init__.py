"""Text to tree. Characters, tokens, spans; no meaning.

`parse` takes any text and never raises: what could not be understood is in the items' `problems`. An item is
parsed once for its text and kept, so that an edit parses one item and the others keep their nodes.
"""

from __future__ import annotations

import threading

from phobos.syntax.items import cut
from phobos.syntax.parser import parse_item
from phobos.syntax.tree import File, Item

__all__ = ["parse", "parsed_items"]

LEAST_KEPT = 300_000
"""Characters of items kept, or three times the largest file, if that is more; the ones used longest ago go first."""

_items: dict[str, Item] = {}
_kept = 0
_room = LEAST_KEPT
_parsed = 0
_lock = threading.Lock()


def parse(text: str) -> File:
    """The tree of a file. Offsets in items count from the item's start; a byte order mark is skipped."""
    global _room
    _room = max(_room, 3 * len(text))
    return File(text, tuple((c.start, _item(text[c.start : c.end])) for c in cut(text)))


def parsed_items() -> int:
    """How many items this process has parsed (not taken from the cache); for tests and benchmarks."""
    return _parsed


def _item(text: str) -> Item:
    global _kept, _parsed
    with _lock:
        item = _items.pop(text, None)
        if item is None:
            item = parse_item(text)
            _parsed += 1
            _kept += len(text)
        _items[text] = item
        while _kept > _room:
            oldest = next(iter(_items))
            del _items[oldest]
            _kept -= len(oldest)
    return item

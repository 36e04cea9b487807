"""What the checker reads of `// run:` headers: the grid that they fix for a kernel."""

from __future__ import annotations

import re

from phobos.check.rule import FixedGrid
from phobos.syntax.headers import header_lines, header_words

_GRID = re.compile(r"\d+(?:,\d+){0,2}\Z")


def fixed_grid(text: str, kernel: str) -> FixedGrid | None:
    """The largest grid that a header fixes for `kernel`; one without `kernel=` speaks of the only kernel."""
    largest: FixedGrid | None = None
    for line in header_lines(text):
        if line.key != "run":
            continue
        words = {word.key: word.given or "" for word in header_words(line)}
        if words.get("kernel", kernel) != kernel or not _GRID.match(words.get("grid", "")):
            continue
        blocks = tuple(int(part) for part in words["grid"].split(","))
        if largest is None or _count(blocks) > _count(largest.blocks):
            largest = FixedGrid(blocks, f"`grid={words['grid']}` in the `// run:` header")
    return largest


def _count(blocks: tuple[int, ...]) -> int:
    product = 1
    for extent in blocks:
        product *= extent
    return product

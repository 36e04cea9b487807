"""Growing a selection: from the word under the cursor to the expression, the statement, the block, the kernel."""

from __future__ import annotations

from phobos.ide.document import Document, Range
from phobos.ide.walk import path_to


def selection(document: Document, offset: int) -> list[Range]:
    """The ranges around `offset`, innermost first, each inside the next; the last is the whole text."""
    ranges = [Range(0, len(document.text))]
    place = document.place(offset)
    if place is not None:
        ranges.append(place.range(0, len(place.item.text)))
        if place.item.node is not None:
            ranges.extend(place.range(node.start, node.end) for node in path_to(place.item.node, place.inside))
        for comment in place.item.comments:
            if comment.start <= place.inside <= comment.end:
                ranges.append(place.range(comment.start, comment.end))
    grown = [ranges[0]]
    for inner in ranges[1:]:
        outer = grown[-1]
        smaller = (inner.start, inner.end) != (outer.start, outer.end)
        if smaller and outer.start <= inner.start <= offset <= inner.end <= outer.end:
            grown.append(inner)
    return grown[::-1]

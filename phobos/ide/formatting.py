"""Formatting: the whole document, a range, or what a typed character just finished. The layout is `syntax.format`'s.

Where the document does not parse, the kernels and functions that do are laid out and the broken ones left alone.
"""

from __future__ import annotations

from phobos.ide.document import Document, Range
from phobos.ide.walk import path_to
from phobos.syntax import tree
from phobos.syntax.format import FormatError
from phobos.syntax.format import format_range as lay_out
from phobos.syntax.tokens import tokens_of

Edit = tuple[int, int, str]
INDENT = "  "


def format_document(document: Document, line_length: int) -> list[Edit]:
    """Edits that lay out the text; lines that stay are not touched, so that cursors and marks stay too."""
    return format_range(document, Range(0, len(document.text)), line_length)


def format_range(document: Document, within: Range, line_length: int) -> list[Edit]:
    """Edits of the lines that a range touches."""
    try:
        return _edits(document.text, within, 0, line_length)
    except FormatError:
        pass  # something somewhere is broken: what is whole can still be laid out
    found: list[Edit] = []
    for start, item in document.items:
        end = start + len(item.text)
        if item.problems or item.node is None or end < within.start or start > within.end:
            continue
        inside = Range(max(within.start - start, 0), min(within.end, end) - start)
        found.extend(_edits(item.text, inside, start, line_length))
    return found


def format_typed(document: Document, offset: int, typed: str, line_length: int) -> list[Edit]:
    """After `}`: the block it closes. After a line end: the line before, and the indent of the new one."""
    if typed == "}":
        place = document.place(offset)
        if place is None or place.item.node is None:
            return []
        for node in reversed(path_to(place.item.node, place.inside)):
            if isinstance(node, tree.Block) and node.end == place.inside:
                return format_range(document, place.range(node.start, node.end), line_length)
        return []
    row = document.lines.line_of(offset)
    if row == 0:
        return []
    before = Range(document.lines.starts[row - 1], document.lines.line_end(row - 1))
    edits = [e for e in format_range(document, before, line_length) if e[1] <= document.lines.starts[row]]
    return [*edits, *_indent(document, row)]


def _edits(text: str, within: Range, offset: int, line_length: int) -> list[Edit]:
    edits = lay_out(text, within.start, within.end, line_length)
    return [(offset + edit.start, offset + edit.end, edit.content) for edit in edits]


def _indent(document: Document, row: int) -> list[Edit]:
    """Blanks that bring a line to the depth of the braces that are open before it."""
    start = document.lines.starts[row]
    text = document.lines.line_text(row)
    depth = 0
    for begin, item in document.items:
        if item.node is None or not begin < start:
            continue
        if start <= begin + len(item.text) or not item.text.rstrip().endswith("}"):
            depth = _depth(item, start - begin)
    if text.strip().startswith("}"):
        depth -= 1
    wanted = INDENT * max(depth, 0)
    blanks = len(text) - len(text.lstrip(" \t"))
    return [] if text[:blanks] == wanted else [(start, start + blanks, wanted)]


def _depth(item: tree.Item, before: int) -> int:
    """How many braces are open at an offset of an item."""
    tokens = tokens_of(item.text)
    depth = 0
    for index, (at, _, _) in enumerate(tokens.list):
        if at >= before:
            break
        depth += {"{": 1, "}": -1}.get(tokens.kinds[index], 0)
    return depth

"""Formatting: the whole document, a range, or what a typed character just finished. The rules are `syntax.format`'s."""

from __future__ import annotations

from difflib import SequenceMatcher

from phobos.ide.document import Document, Range
from phobos.ide.walk import path_to
from phobos.syntax import tree

Edit = tuple[int, int, str]
INDENT = "  "


def format_document(document: Document) -> list[Edit]:
    """Edits that format the text; lines that stay are not touched, so that cursors and marks stay too."""
    from phobos.syntax.format import format_text

    return _line_edits(document, format_text(document.text))


def format_range(document: Document, within: Range) -> list[Edit]:
    """The edits of the whole document that lie on lines of the range."""
    first = document.lines.line_of(within.start)
    last = document.lines.line_of(within.end)
    if last > first and document.lines.starts[last] == within.end:
        last -= 1  # a selection of whole lines ends at the start of the next
    return [
        edit
        for edit in format_document(document)
        if first <= document.lines.line_of(edit[0]) and _last_line(document, edit) <= last
    ]


def format_typed(document: Document, offset: int, typed: str) -> list[Edit]:
    """After `}`: the block it closes. After a line end: the indent of the new line, and the line before."""
    if typed == "}":
        place = document.place(offset)
        if place is None or place.item.node is None:
            return []
        blocks = [n for n in path_to(place.item.node, place.inside) if isinstance(n, tree.Block)]
        closed = [block for block in blocks if block.end == place.inside]
        if not closed:
            return []
        return format_range(document, place.range(closed[-1].start, closed[-1].end))
    row = document.lines.line_of(offset)
    if row == 0:
        return []
    before = document.lines.starts[row - 1]
    edits = format_range(document, Range(before, document.lines.line_end(row - 1)))
    return [*edits, *_indent(document, row)]


def _indent(document: Document, row: int) -> list[Edit]:
    """Blanks that bring a line to the depth of the braces that are open before it."""
    start = document.lines.starts[row]
    text = document.lines.line_text(row)
    place = document.place(start)
    depth = 0
    if place is not None and place.item.node is not None:
        from phobos.ide.cursor import tokens_of

        tokens = tokens_of(place.item.text)
        for index, (at, _, _) in enumerate(tokens.list):
            if at >= start - place.start:
                break
            depth += {"{": 1, "}": -1}.get(tokens.kinds[index], 0)
    if text.strip().startswith("}"):
        depth -= 1
    wanted = INDENT * max(depth, 0)
    blanks = len(text) - len(text.lstrip(" \t"))
    return [] if text[:blanks] == wanted else [(start, start + blanks, wanted)]


def _last_line(document: Document, edit: Edit) -> int:
    start, end, _ = edit
    line = document.lines.line_of(end)
    return line - 1 if end > start and document.lines.starts[line] == end else line


def _line_edits(document: Document, formatted: str) -> list[Edit]:
    """The difference between two texts, by lines."""
    if formatted == document.text:
        return []
    old = _split(document.text)
    new = _split(formatted)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    edits = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            edits.append((starts[a], starts[b], "".join(new[c:d])))
    return edits


def _split(text: str) -> list[str]:
    import re

    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)

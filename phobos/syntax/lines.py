"""Offsets to lines and columns and back, in the columns that editors count.

Lines end at `\\n`, `\\r\\n` and `\\r`, and nowhere else. Offsets are code points of the text. Columns count code
points (utf-32), UTF-16 code units or UTF-8 bytes. A lone surrogate counts as what it would take if it could be
encoded: one UTF-16 unit, three UTF-8 bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(r"\r\n|\r|\n")


class LineIndex:
    """The lines of one text. Lines and columns count from 0; `starts[i]` is the offset of line `i`."""

    __slots__ = ("_ascii", "starts", "text")

    def __init__(self, text: str, starts: list[int] | None = None) -> None:
        """`starts` are those of `text`, for who knows them."""
        self.text = text
        self.starts = [0, *(m.end() for m in _LINE_END.finditer(text))] if starts is None else starts
        self._ascii = text.isascii()

    def edited(self, start: int, end: int, content: str) -> LineIndex:
        """The lines of the text with `content` instead of `[start, end)`; only the lines it touches are read."""
        first, last = self.line_of(start), self.line_of(end)
        if first and self.text[start - 1] == "\r":
            first -= 1  # a line feed right behind it would make one line end of the two
        text = self.text[:start] + content + self.text[end:]
        since, known, moved = self.starts[first], self.starts[last + 1 :], len(text) - len(self.text)
        until = known[0] + moved if known else len(text)
        new = [match.end() for match in _LINE_END.finditer(text, since, until)]
        return LineIndex(text, self.starts[: first + 1] + new + [at + moved for at in known[1:]])

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, max(offset, 0)) - 1

    def line_end(self, line: int) -> int:
        """The offset behind the last character of a line, its line end not counted."""
        if line + 1 >= len(self.starts):
            return len(self.text)
        end = self.starts[line + 1] - 1
        return end - 1 if end > self.starts[line] and self.text[end - 1 : end + 1] == "\r\n" else end

    def line_text(self, line: int) -> str:
        """The characters of a line without its line end."""
        return self.text[self.starts[line] : self.line_end(line)]

    def without(self, start: int, end: int) -> tuple[int, int]:
        """What to take out so that where `[start, end)` stood no blanks are left over, and no empty line.

        That range itself where something stands right before or right behind it.
        """
        line, last = self.line_of(start), self.line_of(end)
        begin, until = self.starts[line], self.line_end(last)
        first, behind = start, end
        while first > begin and self.text[first - 1] in " \t":
            first -= 1
        while behind < until and self.text[behind] in " \t":
            behind += 1
        apart = (first < start or first == begin) and (behind > end or behind == until)
        if start == end or not apart:
            return start, end
        if behind < until:
            return start, behind
        if first > begin or last + 1 == len(self.starts):
            return first, until
        return begin, self.starts[last + 1]

    def position(self, offset: int, encoding: Encoding = "utf-32") -> tuple[int, int]:
        """(line, column) of an offset, which is clamped to the text. Inside `\\r\\n` it is the end of the line."""
        offset = min(max(offset, 0), len(self.text))
        line = self.line_of(offset)
        start = self.starts[line]
        offset = min(offset, self.line_end(line))
        if self._ascii or encoding == "utf-32":
            return line, offset - start
        before = self.text[start:offset]
        if before.isascii():
            return line, offset - start
        return line, sum(map(_WIDTHS[encoding], before))

    def offset(self, line: int, column: int, encoding: Encoding = "utf-32") -> int:
        """The offset of a place. Lines and columns beyond the text are clamped; inside a character is before it."""
        if line < 0:
            return 0
        if line >= len(self.starts):
            return len(self.text)
        start, end = self.starts[line], self.line_end(line)
        column = max(column, 0)
        if self._ascii or encoding == "utf-32":
            return min(start + column, end)
        content = self.text[start:end]
        if content.isascii():
            return min(start + column, end)
        return start + bisect_right(list(accumulate(map(_WIDTHS[encoding], content))), column)


def line_at(text: str, offset: int) -> int:
    """The line of an offset, from 1, for one question about a text of which nobody keeps the lines."""
    return 1 + text.count("\n", 0, offset) + text.count("\r", 0, offset) - text.count("\r\n", 0, offset + 1)


def _utf8(character: str) -> int:
    point = ord(character)
    return 1 if point < 0x80 else 2 if point < 0x800 else 3 if point < 0x10000 else 4


def _utf16(character: str) -> int:
    return 1 if ord(character) < 0x10000 else 2


_WIDTHS = {"utf-8": _utf8, "utf-16": _utf16}

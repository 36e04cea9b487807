"""A text cut into items before anything is tokenized: kernels with their attributes, functions, and the rest.

`kernel` and `fn` cannot stand inside a body, so one at the start of a line begins an item however many braces
are open: a broken kernel does not swallow the next one. Comments between items, and text that is no item, are
stretches of their own, so that a line inserted above a kernel leaves the kernel's text alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from phobos.value import value


@value
class Cut:
    """`text[start:end]` of a file; `is_item` says that it begins with `kernel`, `fn` or an attribute."""

    start: int
    end: int
    is_item: bool


_MARKS = re.compile(r"\{|\}|@|//[^\r\n]*(?:[\r\n]\s*//[^\r\n]*)*+|kernel\b|fn\b")  # comments a run
_LINE_END = re.compile(r"(\r\n|\r|\n)")
_NOT_A_HEADER = re.compile(r"[^\S\r\n]*[=<>.*+/%,)\]:&|^-]")


@value
class _Cutting:
    """How a text was cut. `rests`: places between items where nothing is open, with the number of cuts before."""

    text: str
    cuts: list[Cut]
    rests: list[tuple[int, int]]


_last = _Cutting("", [], [])


def cut(text: str) -> list[Cut]:
    """The stretches of `text` that hold anything but blanks, in order. They do not overlap.

    What the text has in common with the one before, which is nearly all of it behind a key, is not looked at again.
    """
    global _last
    before = _last
    _last = made = _cut(text, before)
    return made.cuts


def _cut(text: str, before: _Cutting) -> _Cutting:
    cuts: list[Cut] = []
    rests: list[tuple[int, int]] = []
    alike, alike_behind = _alike(before.text, text)
    shift = len(text) - len(before.text)
    known = bisect_right(before.rests, (alike, len(before.cuts)))
    start = 1 if text.startswith("\ufeff") else 0  # of the stretch under way; a byte order mark is no text
    if known:
        start, count = before.rests[known - 1]
        cuts, rests = before.cuts[:count], before.rests[:known]
    places = {place: index for index, (place, _) in enumerate(before.rests) if place >= len(before.text) - alike_behind}
    in_item = False
    depth = 0  # of braces
    attributes = -1  # where attributes began that the next `kernel` takes

    def end_stretch(end: int) -> None:
        nonlocal start, in_item
        if not in_item:
            piece = text[start:end]
            if stripped := piece.strip():
                first = start + len(piece) - len(piece.lstrip())
                cuts.append(Cut(first, first + len(stripped), False))
        else:
            cuts.append(Cut(start, end, True))
        start, in_item = end, False

    def begin_item(at: int) -> None:
        nonlocal start, in_item, depth
        if in_item:  # its closing brace is missing, or it never had a body
            end_stretch(_without_closing_comments(text, start, at))
        end_stretch(at)
        start, in_item, depth = at, True, 0

    for mark in _MARKS.finditer(text, start):
        at = mark.start()
        match text[at]:
            case "/":
                pass
            case "{":
                depth += 1
                attributes = -1
            case "}":
                attributes = -1
                if depth == 1:
                    end_stretch(mark.end())
                    same = places.get(mark.end() - shift)
                    if same is not None:  # from here on it is the text before
                        count = before.rests[same][1]
                        more = len(cuts) - count
                        cuts += [Cut(c.start + shift, c.end + shift, c.is_item) for c in before.cuts[count:]]
                        rests += [(place + shift, number + more) for place, number in before.rests[same:]]
                        return _Cutting(text, cuts, rests)
                    rests.append((mark.end(), len(cuts)))
                depth = max(depth - 1, 0)
            case "@":
                if attributes < 0 and (_begins(text, at) or (depth == 0 and not in_item)):
                    attributes = at
                    if depth == 0:
                        begin_item(at)
            case _ if at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_"):
                if attributes >= 0:
                    if depth:
                        begin_item(attributes)
                    attributes = -1
                elif not (in_item or depth) or (_begins(text, at) and not _NOT_A_HEADER.match(text, mark.end())):
                    begin_item(at)
    end_stretch(len(text))
    return _Cutting(text, cuts, rests)


def _alike(one: str, other: str) -> tuple[int, int]:
    """How many characters two texts have in common at their beginning, and at their end of the rest."""
    most = min(len(one), len(other))
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    begins = low
    low, high = 0, most - begins
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return begins, low


def _begins(text: str, at: int) -> bool:
    """Whether an item could begin here: at the start of a line, or right behind a `}` or `;`."""
    at -= 1
    while at >= 0 and text[at] in " \t":
        at -= 1
    return at < 0 or text[at] in "\r\n};\ufeff"


def _without_closing_comments(text: str, start: int, end: int) -> int:
    """Where an unclosed item ends: comments at the very start of the last lines speak of what follows."""
    pieces = _LINE_END.split(text[start:end])
    while len(pieces) > 2 and (not pieces[-1].strip() or pieces[-1].startswith("//")):
        end -= len(pieces.pop()) + len(pieces.pop())
    return end

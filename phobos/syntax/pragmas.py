"""Comments that speak to Phobos: `// phobos: ignore[PH203] reason`, `ignore-file[...]`, `assume uniform(x)`.

Only their form is known here. What a code is, where a comment applies and whether it was needed is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from phobos.syntax.tree import Comment
from phobos.value import value

Kind = Literal["ignore", "ignore-file", "assume-uniform", "unknown", "misaddressed"]


@value
class Word:
    """A code, a rule name, a variable or an unknown word in a pragma, and where it stands."""

    start: int
    end: int
    text: str


@value
class Pragma:
    """A comment `// phobos: ...`; offsets count as the comment's do.

    `words` are the codes and rule names of an `ignore` or `ignore-file`, or the one variable of an `assume`. An
    `ignore` without words is a blanket one. `unknown` is anything else behind `phobos:`; its text is `reason` and its
    one word what that begins with, if anything. `misaddressed` is what would speak to us if its beginning, which is
    its one word, were `// phobos:`; nobody reads it.
    """

    start: int
    end: int
    kind: Kind
    words: tuple[Word, ...]
    reason: str

    @property
    def is_blanket(self) -> bool:
        return self.kind in ("ignore", "ignore-file") and not self.words


_PRAGMA = re.compile(r"//\s*phobos\s*:\s*")
_NEARLY = re.compile(r"//+!?\s*phobos\s*[:;,=]?\s*(?=ignore(?:-file)?\s*\[|assume\s+uniform\s*\()", re.IGNORECASE)
_FIRST = re.compile(r"[^\s\[(:]+|\S+")
_IGNORE = re.compile(r"(ignore(?:-file)?)(?![\w-])\s*(?:\[([^\]]*)\]?)?\s*")
_ASSUME = re.compile(r"assume\s+uniform\s*\(\s*([^\W\d]\w*)\s*\)\s*")
_WORD = re.compile(r"[^\s,]+")


def pragma_of(comment: Comment) -> Pragma | None:
    """The pragma that a comment is, if it is one."""
    text = comment.text
    opening = _PRAGMA.match(text)
    at = comment.start
    if opening is None:
        if nearly := _NEARLY.match(text):
            written = nearly[0].rstrip()
            word = Word(at, at + len(written), written)
            return Pragma(at, comment.end, "misaddressed", (word,), text[nearly.end() :].strip())
        return None
    if ignore := _IGNORE.match(text, opening.end()):
        listed, start = ignore[2] or "", at + max(ignore.start(2), 0)
        words = tuple(Word(start + m.start(), start + m.end(), m[0]) for m in _WORD.finditer(listed))
        kind: Kind = "ignore-file" if ignore[1] == "ignore-file" else "ignore"
        return Pragma(at, comment.end, kind, words, text[ignore.end() :].strip())
    if assume := _ASSUME.match(text, opening.end()):
        name = Word(at + assume.start(1), at + assume.end(1), assume[1])
        return Pragma(at, comment.end, "assume-uniform", (name,), text[assume.end() :].strip())
    first = _FIRST.match(text, opening.end())
    unknown = (Word(at + first.start(), at + first.end(), first[0]),) if first else ()
    return Pragma(at, comment.end, "unknown", unknown, text[opening.end() :].strip())


def pragmas(comments: Iterable[Comment]) -> list[Pragma]:
    """The pragmas among comments, in their order."""
    return [pragma for comment in comments if (pragma := pragma_of(comment)) is not None]

"""The header of a file: the `// run:` and `// expect:` comments that stand above all code, and the words in them.

Only their form is known here. What a name means, and what is to be said of a word that has none, is not.
"""

from __future__ import annotations

import re
from typing import Literal

from phobos.syntax.lines import LineIndex
from phobos.value import value

OPTIONS = frozenset((
    "kernel", "grid", "resident", "schedule", "l2_group", "device", "detect", "scheduler", "seed", "timeout", "order",
))  # fmt: skip
"""Words of a `// run:` line that say how to run. Every other one gives a value to a name; `arg.` in front says that
one of these does, too."""

FILLS = ("zeros", "ones", "iota", "random", "normal")
"""Words that fill an array: `X=ones`, here and on the command line."""

FUSED = "+"
"""Between the kernels of one launch, in `kernel=a+b`."""

_LINE = re.compile(r"\s*//\s*(run|expect):(.*)")
_WORD = re.compile(r"\S+")


@value
class HeaderLine:
    """One such comment: its line, counted from 1, and what stands behind the colon, at offset `start` of the file."""

    key: Literal["run", "expect"]
    line: int
    start: int
    text: str


@value
class HeaderWord:
    """`KEY=GIVEN` of a `// run:` line, `start` and `end` of the key in the file. Without a `=`, `given` is None."""

    start: int
    end: int
    key: str
    given: str | None

    @property
    def is_option(self) -> bool:
        return self.key in OPTIONS

    @property
    def name(self) -> str:
        """Of what is no option: whom the value is for."""
        return self.key.removeprefix("arg.")


def header_lines(text: str) -> tuple[HeaderLine, ...]:
    """The header lines of a file, in order: those before the first line that is neither blank nor a comment."""
    if "run:" not in text and "expect:" not in text:
        return ()
    found = []
    lines = LineIndex(text)
    for row, start in enumerate(lines.starts):
        line = lines.line_text(row)
        stripped = line.strip()
        if stripped and not stripped.startswith("//"):
            break
        match = _LINE.match(line)
        if match is not None:
            key: Literal["run", "expect"] = "run" if match[1] == "run" else "expect"
            found.append(HeaderLine(key, row + 1, start + match.start(2), match[2]))
    return tuple(found)


def header_words(line: HeaderLine) -> tuple[HeaderWord, ...]:
    """The words of a `// run:` line."""
    found = []
    for match in _WORD.finditer(line.text):
        key, equals, given = match[0].partition("=")
        start = line.start + match.start()
        found.append(HeaderWord(start, start + len(key), key, given if equals else None))
    return tuple(found)

"""How text leaves a command: sentences as the console can show them, documents byte for byte in UTF-8.

A document is what another program reads (JSON, SARIF, XML, CUDA, formatted source, a diff): its encoding is part of
its format, whatever the console's is. A sentence is for a person, and loses an accent rather than fail.
"""

from __future__ import annotations

import codecs
import io
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phobos.check.project import Source

_PLAIN = {"…": "...", "≤": "<=", "≥": ">=", "≠": "!=", "×": "x", "·": "*", "–": "-", "—": "-", "→": "->", "µ": "u", "²": "^2"}  # fmt: skip  # noqa: E501


def document(text: str | bytes) -> None:
    """Put a document on standard output: UTF-8, line ends as they are, escapes for file names as `write` has them."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    sys.stdout.flush()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # a caller has put something of its own, which takes text only, in its place
        sys.stdout.write(data.decode("utf-8"))
        return
    stream.write(data)
    stream.flush()


def with_mark(source: Source, text: str) -> str:
    """`text` with the byte order mark that its source had."""
    return "\ufeff" + text if source.bom else text


def unified(name: str, before: str, after: str) -> str:
    """A unified diff that `patch` takes; lines end where Phobos ends them."""
    from difflib import unified_diff

    from phobos.syntax.lines import LineIndex

    def lines(text: str) -> list[str]:
        return [text[a:b] for a, b in pairwise([*LineIndex(text).starts, len(text)]) if a < b]

    out: list[str] = []
    shown = _quoted(name)
    for line in unified_diff(lines(before), lines(after), shown, shown):
        out.append(line if line.endswith(("\n", "\r")) else line + "\n\\ No newline at end of file\n")
    return "".join(out)


def _quoted(name: str) -> str:
    """A file name as `git` and `patch` have it in the head of a diff: escaped where it could not stand in a line."""
    if name.isprintable():
        return name
    plain = {b'"'[0]: '\\"', b"\\"[0]: "\\\\"}
    data = name.encode("utf-8", "surrogateescape")
    return '"' + "".join(plain.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in data) + '"'


def make_readable() -> None:
    """What the console cannot encode is printed in ASCII: `...` for an ellipsis, `?` for a letter."""
    codecs.register_error("phobos-plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="phobos-plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c, "?") for c in wrong), error.end

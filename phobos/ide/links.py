"""Links in a document: rule codes in suppressions to their pages, and files that headers name."""

from __future__ import annotations

import os
import re

from phobos.check import registry
from phobos.check.rule import url
from phobos.ide.document import Document, Range
from phobos.syntax.headers import header_lines
from phobos.syntax.pragmas import pragmas
from phobos.value import value

_FILE_NAME = re.compile(r"=@([^\s:]+)")


@value
class Link:
    """`target` is a URL, or, where `is_file`, a path."""

    range: Range
    target: str
    tooltip: str
    is_file: bool


def links(document: Document) -> list[Link]:
    found: list[Link] = []
    for start, item in document.items:
        for pragma in pragmas(item.comments):
            if pragma.kind in ("ignore", "ignore-file"):
                for word in pragma.words:
                    code = registry.code_of(word.text)
                    if code is not None:
                        range = Range(start + word.start, start + word.end)
                        found.append(Link(range, url(code), registry.names()[code], False))
    for line in header_lines(document.text):
        for name in _FILE_NAME.finditer(line.text if line.key == "run" else ""):
            path = os.path.normpath(os.path.join(os.path.dirname(document.path), name[1]))
            range = Range(line.start + name.start(1), line.start + name.end(1))
            found.append(Link(range, path, "open this file", True))
    return sorted(found, key=lambda link: link.range.start)

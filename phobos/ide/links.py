"""Links in a document: rule codes in suppressions to their pages, and files that headers name."""

from __future__ import annotations

import os
import re

from phobos.check import registry
from phobos.check.rule import url
from phobos.ide.document import Document, Range
from phobos.value import value

_SUPPRESSION = re.compile(r"//\s*phobos:\s*ignore(?:-file)?\s*\[(?P<words>[^\]\r\n]*)")
_WORD = re.compile(r"[A-Za-z][\w-]*")
_FILE = re.compile(r"^[ \t]*//[ \t]*run:[^\r\n]*", re.MULTILINE)
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
    for suppression in _SUPPRESSION.finditer(document.text):
        for word in _WORD.finditer(document.text, suppression.start("words"), suppression.end("words")):
            code = registry.code_of(word.group())
            if code is not None:
                found.append(Link(Range(word.start(), word.end()), url(code), registry.names()[code], False))
    for header in _FILE.finditer(document.text):
        for name in _FILE_NAME.finditer(document.text, header.start(), header.end()):
            path = os.path.normpath(os.path.join(os.path.dirname(document.path), name[1]))
            found.append(Link(Range(name.start(1), name.end(1)), path, "open this file", True))
    return sorted(found, key=lambda link: link.range.start)

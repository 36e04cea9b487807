"""What an editor can fold: kernels, functions, blocks, attribute lists and runs of comments."""

from __future__ import annotations

import re
from typing import Literal

from phobos.ide.document import Document, Range
from phobos.ide.walk import every
from phobos.syntax import tree
from phobos.value import value

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")  # as editors end lines; `str.splitlines` knows others too


@value
class Fold:
    """From the end of the first line to the last character; `kind` as editors group them."""

    range: Range
    kind: Literal["region", "comment"]


def folds(document: Document) -> list[Fold]:
    found: list[Fold] = []
    for place in document.places():
        node = place.item.node
        assert node is not None
        if isinstance(node, tree.Kernel) and len(node.attributes) > 1:
            first, last = node.attributes[0], node.attributes[-1]
            found.append(Fold(place.range(first.start, last.end), "region"))
        for inner in every(node):
            if isinstance(inner, tree.Block):
                found.append(Fold(place.range(inner.start, inner.end), "region"))
    found.extend(Fold(run, "comment") for run in _comment_runs(document.text))
    spread = [fold for fold in found if "\n" in document.text[fold.range.start : fold.range.end].replace("\r", "\n")]
    return sorted(spread, key=lambda fold: (fold.range.start, -fold.range.end))


def _comment_runs(text: str) -> list[Range]:
    """Two or more whole-line comments one under the other."""
    runs: list[Range] = []
    start = end = -1
    offset = 0
    for line in _LINE.findall(text):
        body = line.strip()
        if body.startswith("//"):
            if start < 0:
                start = offset + line.index("//")
            end = offset + len(line.rstrip())
        else:
            if start >= 0:
                runs.append(Range(start, end))
            start = -1
        offset += len(line)
    if start >= 0:
        runs.append(Range(start, end))
    return runs

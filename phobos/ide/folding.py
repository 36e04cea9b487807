"""What an editor can fold: kernels, functions, blocks, attribute lists and runs of comments."""

from __future__ import annotations

import re
from typing import Literal

from phobos.ide.document import Document, Range
from phobos.ide.keeping import kept
from phobos.ide.walk import every
from phobos.syntax import tree
from phobos.value import value

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")  # as editors end lines; `str.splitlines` knows others too
_LINE_END = re.compile(r"[\r\n]")


@value
class Fold:
    """From the end of the first line to the last character; `kind` as editors group them."""

    range: Range
    kind: Literal["region", "comment"]


def folds(document: Document) -> list[Fold]:
    found: list[Fold] = []
    for place in document.places():
        found.extend(Fold(place.range(start, end), "region") for start, end in _regions(place.item))
    found.extend(Fold(run, "comment") for run in _comment_runs(document.text))
    return sorted(found, key=lambda fold: (fold.range.start, -fold.range.end))


@kept
def _regions(item: tree.Item) -> tuple[tuple[int, int], ...]:
    """What takes several lines of one item."""
    node = item.node
    assert node is not None
    found = [(inner.start, inner.end) for inner in every(node) if isinstance(inner, tree.Block)]
    if isinstance(node, tree.Kernel) and len(node.attributes) > 1:
        found.append((node.attributes[0].start, node.attributes[-1].end))
    return tuple((start, end) for start, end in found if _LINE_END.search(item.text, start, end))


def _comment_runs(text: str) -> list[Range]:
    """Two or more whole-line comments one under the other."""
    runs: list[Range] = []
    run: list[Range] = []
    offset = 0
    for line in [*_LINE.findall(text), ""]:
        if line.strip().startswith("//"):
            run.append(Range(offset + line.index("//"), offset + len(line.rstrip())))
        else:
            if len(run) > 1:
                runs.append(Range(run[0].start, run[-1].end))
            run = []
        offset += len(line)
    return runs

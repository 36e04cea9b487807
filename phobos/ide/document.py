"""A document as every editor answer sees it: its text, its analysis, and what the checker said of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from phobos.diagnostic import Diagnostic
from phobos.ide.keeping import make_room
from phobos.ide.names import Names, names_of
from phobos.semantics.module import Module
from phobos.semantics.program import Program
from phobos.syntax import tree
from phobos.syntax.lines import LineIndex
from phobos.value import value


@value
class Range:
    """Code points `start` (included) to `end` (excluded) of the document."""

    start: int
    end: int


@value
class Place:
    """An offset of the document in its item: `inside` counts from the item's first character, at `start`."""

    start: int
    item: tree.Item
    inside: int

    @property
    def names(self) -> Names:
        return names_of(self.item)

    def range(self, start: int, end: int) -> Range:
        return Range(self.start + start, self.start + end)


class Document:
    """Immutable. `findings` have absolute spans, as `check.findings` gives them."""

    __slots__ = ("_functions", "_held", "_starts", "findings", "items", "lines", "module", "path", "text")

    def __init__(
        self, path: str, text: str, module: Module, lines: LineIndex, findings: tuple[Diagnostic, ...] = ()
    ) -> None:
        self.path = path
        self.text = text
        self.module = module
        self.lines = lines
        self.findings = findings
        self.items = tuple((start, self._item(start, item)) for start, item in module.file.items)
        self._starts = [start for start, _ in self.items]
        self._held = {start: item for start, item in self.items if item.node is not None}
        self._functions: dict[str, Place] = {}
        for place in self.places():
            if isinstance(place.item.node, tree.Function):
                self._functions.setdefault(place.item.node.name.text, place)
        make_room(len(self.items))

    def _item(self, start: int, item: tree.Item) -> tree.Item:
        """The item with the very nodes that its program was made of: facts are keyed by node.

        They are others where the parser forgot an item and parsed it again while its program was kept.
        """
        program = None if item.node is None else self.module.known_program(start, item)
        if program is None or program.kernel is item.node:
            return item
        return tree.Item(item.text, program.kernel, item.problems, item.comments)

    def places(self) -> Iterator[Place]:
        """Every kernel and function, at its first character."""
        for start, item in self.items:
            if item.node is not None:
                yield Place(start, item, 0)

    def place(self, offset: int) -> Place | None:
        """The item that holds `offset`, or ends there."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return None
        start, item = self.items[index]
        if offset == start and index > 0 and item.node is None:
            before, previous = self.items[index - 1]
            if previous.node is not None and before + len(previous.text) == offset:
                start, item = before, previous
        if offset > start + len(item.text):
            return None
        return Place(start, item, offset - start)

    def program(self, place: Place) -> Program | None:
        """The program of a place's kernel or function, where there is one."""
        item = self._held.get(place.start)
        if item is None:
            return None
        program = self.module.program(place.start, item)
        if program.kernel is not item.node:  # another text's, made meanwhile of nodes that the parser has forgotten
            program = self.module.new_program(place.start, item)
        return program

    def program_in_sight(self, place: Place) -> Program | None:
        """A program that knows what the names in sight at a place are, and need not know more: right behind a key."""
        item = self._held.get(place.start)
        return None if item is None else self.module.in_sight(place.start, item, place.inside)

    def row(self, place: Place, offset: int) -> int:
        """The line, counted from 1, of an offset of a place's item."""
        return self.lines.line_of(place.start + offset) + 1

    def function(self, name: str) -> Place | None:
        """The function of that name: the first, as calls take it."""
        return self._functions.get(name)

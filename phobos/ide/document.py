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

    __slots__ = ("_functions", "_items", "_starts", "findings", "lines", "module", "path", "text")

    def __init__(
        self, path: str, text: str, module: Module, lines: LineIndex, findings: tuple[Diagnostic, ...] = ()
    ) -> None:
        self.path = path
        self.text = text
        self.module = module
        self.lines = lines
        self.findings = findings
        self._starts = [start for start, _ in module.file.items]
        self._items: list[tree.Item | None] = [None] * len(self._starts)  # as `_item` gives them, once asked for
        self._functions = [
            (index, item.node.name.text)
            for index, (_, item) in enumerate(module.file.items)
            if isinstance(item.node, tree.Function)
        ]
        make_room(len(self._starts))

    def _item(self, index: int) -> tree.Item:
        """An item with the very nodes that its program was made of: facts are keyed by node.

        They are others where the parser forgot an item and parsed it again while its program was kept.
        """
        known = self._items[index]
        if known is None:
            start, known = self.module.file.items[index]
            program = None if known.node is None else self.module.known_program(start, known)
            if program is not None and program.kernel is not known.node:
                known = tree.Item(known.text, program.kernel, known.problems, known.comments)
            self._items[index] = known
        return known

    @property
    def items(self) -> Iterator[tuple[int, tree.Item]]:
        """Every stretch of the text that holds anything, with where it begins."""
        for index, start in enumerate(self._starts):
            yield start, self._item(index)

    def places(self) -> Iterator[Place]:
        """Every kernel and function, at its first character."""
        for start, item in self.items:
            if item.node is not None:
                yield Place(start, item, 0)

    def functions(self) -> Iterator[Place]:
        """Every function, at its first character."""
        for index, _ in self._functions:
            yield Place(self._starts[index], self._item(index), 0)

    def place(self, offset: int) -> Place | None:
        """The item that holds `offset`, or ends there."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return None
        start, item = self._starts[index], self._item(index)
        if offset == start and index > 0 and item.node is None:
            before, previous = self._starts[index - 1], self._item(index - 1)
            if previous.node is not None and before + len(previous.text) == offset:
                start, item = before, previous
        if offset > start + len(item.text):
            return None
        return Place(start, item, offset - start)

    def program(self, place: Place) -> Program | None:
        """The program of a place's kernel or function, where there is one."""
        item = self._holding(place)
        if item is None:
            return None
        program = self.module.program(place.start, item)
        if program.kernel is not item.node:  # another text's, made meanwhile of nodes that the parser has forgotten
            program = self.module.new_program(place.start, item)
        return program

    def program_in_sight(self, place: Place) -> Program | None:
        """A program that knows what the names in sight at a place are, and need not know more: right behind a key."""
        item = self._holding(place)
        return None if item is None else self.module.in_sight(place.start, item, place.inside)

    def _holding(self, place: Place) -> tree.Item | None:
        """The kernel or function that begins where a place's item does; the text of the place may go on behind it."""
        index = bisect_right(self._starts, place.start) - 1
        if index < 0 or self._starts[index] != place.start:
            return None
        item = self._item(index)
        return None if item.node is None else item

    def row(self, place: Place, offset: int) -> int:
        """The line, counted from 1, of an offset of a place's item."""
        return self.lines.line_of(place.start + offset) + 1

    def function(self, name: str) -> Place | None:
        """The function of that name: the first, as calls take it."""
        index = next((index for index, called in self._functions if called == name), None)
        return None if index is None else Place(self._starts[index], self._item(index), 0)

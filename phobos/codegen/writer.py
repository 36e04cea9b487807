"""Lines of C++ with indentation, and `#line` so that the compiler and tools speak of the .ph file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """`lines` are what is written so far, each indented by two spaces a brace; `file` is a string literal."""

    def __init__(self, file: str) -> None:
        self.lines: list[str] = []
        self._depth = 0
        self._file = file
        self._last = 0

    def line(self, text: str = "") -> None:
        self.lines.append("  " * self._depth + text if text else "")

    def at(self, number: int) -> None:
        """What follows belongs to line `number` of the source."""
        if number and number != self._last:
            if self.lines and self.lines[-1].startswith("#line"):  # nothing came of that line
                self.lines.pop()
            self.lines.append(f"#line {number} {self._file}")
            self._last = number

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """Braces around what follows, behind `head`; they serve for braces inside around all of it, too."""
        self.line(f"{head} {{" if head else "{")
        first = len(self.lines)
        self._depth += 1
        yield
        self._depth -= 1
        inside = self.lines[first:]
        starts = _starts(inside, self._depth + 1)
        if starts == ["{"] and inside[0].lstrip() == "{":
            self.lines[first:] = _further_out(inside[1:-1])
        self.line("}")

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Braces around what follows, left out where it is one statement that declares nothing."""
        first = len(self.lines)
        with self.block():
            yield
        inside = self.lines[first + 1 : -1]
        starts = _starts(inside, self._depth + 1)
        if len(starts) == 1 and _STATEMENT.match(starts[0]):
            self.lines[first:] = _further_out(inside)

    @contextmanager
    def naming(self, name: str, definition: str) -> Iterator[None]:
        """`definition` in front of what follows, if that uses `name`."""
        first = len(self.lines)
        self.line(definition)
        yield
        if not any(re.search(rf"\b{name}\b", line) for line in self.lines[first + 1 :]):
            del self.lines[first]

    @contextmanager
    def lambda_(self, head: str) -> Iterator[None]:
        self.line(f"{head} {{")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.line("};")

    @contextmanager
    def rows(self, head: str, turns: int = 0) -> Iterator[None]:
        """A loop that is unrolled, by so many turns where a number is given; none where nothing stands in it."""
        self.line(f"#pragma unroll {turns}" if turns else "#pragma unroll")
        first = len(self.lines)
        with self.block(head):
            yield
        if len(self.lines) == first + 2:
            del self.lines[first - 1 :]

    @contextmanager
    def each(self, name: str, count: int) -> Iterator[str]:
        """An unrolled loop over the numbers below `count`, of which one needs none; gives the number's spelling."""
        if count == 1:
            yield "0"
        else:
            with self.rows(f"for (int {name} = 0; {name} < {count}; ++{name})"):
                yield name

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


_STATEMENT = re.compile(r"(for|if) \(|[A-Za-z_]\w*(\[|\(|\.| [-+*/|&^]?= )")  # a declaration has a type and a name
_FURTHER = ("}", "else", "#")  # what begins a line but no statement


def _starts(lines: list[str], depth: int) -> list[str]:
    """The first lines of the statements at a depth."""
    indent = "  " * depth
    outermost = [line[len(indent) :] for line in lines if line.startswith(indent)]
    return [line for line in outermost if line[:1] not in ("", " ") and not line.startswith(_FURTHER)]


def _further_out(lines: list[str]) -> list[str]:
    return [line if line.startswith("#") else line[2:] for line in lines]

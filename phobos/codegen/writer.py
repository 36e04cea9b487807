"""Lines of C++ with indentation, and `#line` so that the compiler and tools speak of the .ph file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
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
            self.lines.append(f"#line {number} {self._file}")
            self._last = number

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.line("}")

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
        """A loop that is unrolled; by so many turns where a number is given."""
        self.line(f"#pragma unroll {turns}" if turns else "#pragma unroll")
        with self.block(head):
            yield

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

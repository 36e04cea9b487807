"""A file's programs: every kernel and every function, analysed once per text and kept.

The one cache of facts: keyed by (item text, texts of the functions it inlines, settings), so that a line
inserted above twenty kernels analyses none again and an edit in a function exactly its callers.
"""

from __future__ import annotations

from phobos.diagnostic import Span
from phobos.semantics.program import Program, Settings
from phobos.syntax import tree
from phobos.value import value


@value
class Unit:
    """One kernel or function of a file with its program and where it stands."""

    offset: int
    item: tree.Item
    program: Program


class Module:
    """A file, analysed. `kernels` and `functions` by name (the first of a name), `units` in file order."""

    path: str
    file: tree.File
    units: tuple[Unit, ...]
    kernels: dict[str, Unit]
    functions: dict[str, Unit]

    def absolute(self, unit: Unit, span: Span) -> Span:
        """A span of `unit`'s facts as one of the file: owner becomes `path`, offsets count from the file's start."""
        raise NotImplementedError


def analyse(path: str, text: str, settings: Settings = Settings()) -> Module:
    """Parse and analyse a whole file. Never raises for what the text holds."""
    raise NotImplementedError


def analysed_items() -> int:
    """How many items this process has analysed (not taken from the cache) so far; for tests and benchmarks."""
    raise NotImplementedError

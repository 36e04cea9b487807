"""The one diagnostic of the project: what the checker says, and what a fault of a run says.

A diagnostic knows places, never lines: a `Span` is a half-open range of code points in some owner. While
facts are made, the owner is an item (`None` is the kernel being analysed, a string is the `fn` of that
name) and offsets count from the item's first character, so that text inserted above an item changes
nothing. `check.findings` turns them into offsets of the file once; lines and columns are made by
`syntax.LineIndex` at the very edge (renderers, server).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from phobos.value import replace, value

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")  # gravest first
Applicability = Literal["safe", "unsafe", "display-only"]
Tag = Literal["unnecessary", "deprecated"]


@value
class Span:
    """Code points `start` (included) to `end` (excluded) of `owner`.

    `owner` is `None` for the kernel under analysis, the name of a `fn` for a place inside that function,
    and a path once the span has been made absolute in a file.
    """

    owner: str | None
    start: int
    end: int


@value
class Related:
    """A further place that a diagnostic speaks of, in the order of its chain."""

    span: Span
    message: str


@value
class Edit:
    """Replace the text of `span` by `content` (empty: delete; empty span: insert)."""

    span: Span
    content: str


@value
class Fix:
    """Edits that mend a finding. Only `safe` ones are applied without being asked for by name."""

    message: str
    applicability: Applicability
    edits: tuple[Edit, ...]


@value
class Diagnostic:
    """One finding or fault.

    `message` is its first line, in the user's terms; `label` stands under the caret at `span`; `related`
    is the chain of other places; `notes` are sentences without a place; `help` says what to write instead.
    """

    code: str
    name: str
    severity: Severity
    message: str
    span: Span
    label: str = ""
    related: tuple[Related, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    fix: Fix | None = None
    tags: tuple[Tag, ...] = ()

    def map_spans(self, place: Callable[[Span], Span]) -> Diagnostic:
        """The same diagnostic with every span replaced by `place(span)`."""
        fix = self.fix
        if fix is not None:
            fix = replace(fix, edits=tuple(replace(e, span=place(e.span)) for e in fix.edits))
        return replace(
            self,
            span=place(self.span),
            related=tuple(replace(r, span=place(r.span)) for r in self.related),
            fix=fix,
        )


def plural(number: int, noun: str) -> str:
    """`1 block`, `2 blocks`: a number in a message."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

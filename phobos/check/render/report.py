"""What a renderer is given: per file its findings, in order, and what was left out."""

from __future__ import annotations

from phobos.diagnostic import Diagnostic
from phobos.syntax.lines import LineIndex
from phobos.value import value


@value
class Listing:
    """The findings of one file, as they are to be shown, spans absolute in `text`; `name` is the file as given."""

    name: str
    text: str
    lines: LineIndex
    diagnostics: tuple[Diagnostic, ...]


@value
class Report:
    """All listings of a run. `files` were checked; `hidden` are findings below the severity, of which `failing` make
    the check fail all the same (`--fail-on`); `baselined` were known before. `proofs`: the notes of a finding were
    asked for (`--prove`), so that no form for people may leave them out."""

    listings: tuple[Listing, ...]
    files: int
    hidden: tuple[Diagnostic, ...] = ()
    failing: int = 0
    baselined: int = 0
    colour: bool = False
    proofs: bool = False

"""Workflow commands for GitHub Actions: an annotation beside the line, readable in the raw log too."""

from __future__ import annotations

from phobos.check.render.report import Listing, Report
from phobos.check.render.text import clean
from phobos.diagnostic import Diagnostic

_LEVEL = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report) -> str:
    return "".join(_command(d, listing) + "\n" for listing in report.listings for d in listing.diagnostics)


def _command(diagnostic: Diagnostic, listing: Listing) -> str:
    lines, name = listing.lines, listing.name
    row, column = lines.position(diagnostic.span.start)
    last, end_column = lines.position(diagnostic.span.end)
    place = [f"line={row + 1}"]
    if last == row:  # GitHub drops an annotation that has columns on several lines
        place += [f"col={column + 1}", f"endLine={row + 1}", f"endColumn={end_column + 1}"]
    else:
        place += [f"endLine={last + 1}"]
    properties = ",".join(
        [f"title={_property(f'{diagnostic.code} {diagnostic.name}')}", f"file={_property(name)}", *place]
    )
    shown = clean(name)
    said = [f"{shown}:{row + 1}:{column + 1}: {diagnostic.code} {diagnostic.message}"]
    for related in diagnostic.related:
        at, at_column = lines.position(related.span.start)
        said.append(f"  {shown}:{at + 1}:{at_column + 1}: {related.message}")
    said += [f"  note: {note}" for note in diagnostic.notes]
    if diagnostic.help:
        said.append(f"  help: {diagnostic.help}")
    return f"::{_LEVEL[diagnostic.severity]} {properties}::{_data(clean(chr(10).join(said), keep_lines=True))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

"""JSON: a list of findings, rows and columns from 1 in code points, an end one past the last."""

from __future__ import annotations

import json
from typing import Any

from phobos.check.render.report import Listing, Report
from phobos.check.rule import url
from phobos.diagnostic import Diagnostic, Span
from phobos.syntax.lines import LineIndex


def render_json(report: Report) -> str:
    return json.dumps(findings(report), indent=2, ensure_ascii=False) + "\n"


def render_json_lines(report: Report) -> str:
    return "".join(json.dumps(found, ensure_ascii=False) + "\n" for found in findings(report))


def findings(report: Report) -> list[dict[str, Any]]:
    return [as_dict(diagnostic, listing) for listing in report.listings for diagnostic in listing.diagnostics]


def as_dict(diagnostic: Diagnostic, listing: Listing) -> dict[str, Any]:
    """One finding, of the shape that `docs/cli.md` promises."""
    name, lines = listing.name, listing.lines
    fix = diagnostic.fix
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "filename": name,
        **place(diagnostic.span, lines),
        "related": [
            {"message": related.message, "filename": name, **place(related.span, lines)}
            for related in diagnostic.related
        ],
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
        "fix": None
        if fix is None
        else {
            "applicability": fix.applicability,
            "message": fix.message,
            "edits": [{"content": edit.content, **place(edit.span, lines)} for edit in fix.edits],
        },
        "url": url(diagnostic.code),
    }


def place(span: Span, lines: LineIndex) -> dict[str, Any]:
    return {"location": position(span.start, lines), "end_location": position(span.end, lines)}


def position(offset: int, lines: LineIndex) -> dict[str, int]:
    row, column = lines.position(offset)
    return {"row": row + 1, "column": column + 1}

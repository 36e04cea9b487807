"""What the page asks of the checker, inside the browser's Python: texts in, JSON out, places in JavaScript's units."""

from __future__ import annotations

import json

from phobos.check.configuration import DEFAULT
from phobos.check.engine import findings
from phobos.check.fixes import fix_all
from phobos.check.render import Listing, Report, render
from phobos.diagnostic import Diagnostic, Span
from phobos.syntax.format import FormatError, format_text
from phobos.syntax.lines import LineIndex

NAME = "kernel.ph"  # what the text is called in reports


def check(text: str, notes: bool) -> str:
    """`reports` as the command prints them on a terminal, and where in the text each finding stands."""
    found = findings(NAME, text)
    shown = tuple(one for one in found if notes or one.severity != "info")
    hidden = tuple(one for one in found if one not in shown)
    report = Report((Listing(NAME, text, LineIndex(text), shown),), 1, hidden, colour=True)
    forms = {form: render(report, form) for form in ("full", "concise")}
    return json.dumps({"reports": forms, "findings": [_placed(one, text) for one in shown]})


def formatted(text: str) -> str:
    """The text in the canonical layout, or why it has none."""
    try:
        return json.dumps({"text": format_text(text)})
    except FormatError as error:
        return json.dumps({"problem": f"{NAME}:{error}"})


def fixed(text: str) -> str:
    """The text after all safe fixes, and how many there were."""
    done = fix_all(NAME, text, DEFAULT, unsafe=False)
    return json.dumps({"text": done.text, "fixes": sum(done.counts.values())})


def _placed(finding: Diagnostic, text: str) -> dict[str, object]:
    row, column = LineIndex(text).position(finding.span.start)
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "label": finding.label,
        "line": row + 1,
        "column": column + 1,
        "span": _units(finding.span, text),
        "related": [{"span": _units(one.span, text), "message": one.message} for one in finding.related],
        "fixable": finding.fix is not None and finding.fix.applicability == "safe",
    }


def _units(span: Span, text: str) -> tuple[int, int]:
    """A span as offsets into a JavaScript string, which counts UTF-16 code units."""
    if text.isascii():
        return span.start, span.end
    before, within = text[: span.start], text[span.start : span.end]
    start = len(before.encode("utf-16-le", "surrogatepass")) // 2
    return start, start + len(within.encode("utf-16-le", "surrogatepass")) // 2

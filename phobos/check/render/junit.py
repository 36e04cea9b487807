"""JUnit XML: a suite per file, a failure per finding, and one passing case for a file without any."""

from __future__ import annotations

from phobos.check.render.report import Listing, Report
from phobos.check.render.text import full


def render(report: Report) -> str:
    findings = sum(len(listing.diagnostics) for listing in report.listings)
    cases = sum(max(1, len(listing.diagnostics)) for listing in report.listings)
    out = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="phobos check" tests="{cases}" failures="{findings}" errors="0">',
    ]
    for listing in report.listings:
        out += _suite(listing)
    return "\n".join([*out, "</testsuites>"]) + "\n"


def _suite(listing: Listing) -> list[str]:
    name = _attribute(listing.name)
    found = listing.diagnostics
    out = [f'  <testsuite name="{name}" tests="{max(1, len(found))}" failures="{len(found)}" errors="0" skipped="0">']
    if not found:
        out.append(f'    <testcase name="{name}" classname="{name}"/>')
    for diagnostic in found:
        row, column = listing.lines.position(diagnostic.span.start)
        case = _attribute(f"{diagnostic.code} {diagnostic.name} ({row + 1}:{column + 1})")
        body = _text(full(diagnostic, listing.text, listing.name, False, listing.lines))
        out += [
            f'    <testcase name="{case}" classname="{name}" line="{row + 1}">',
            f'      <failure type="{diagnostic.severity}" message="{_attribute(diagnostic.message)}">{body}</failure>',
            "    </testcase>",
        ]
    return [*out, "  </testsuite>"]


def _text(text: str) -> str:
    """Escaped, and without what XML 1.0 cannot hold."""
    kept = "".join(c if c in "\t\n\r" or (c >= " " and c not in "￾￿") else "\N{REPLACEMENT CHARACTER}" for c in text)
    return kept.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attribute(text: str) -> str:
    return _text(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")

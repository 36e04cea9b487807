"""SARIF 2.1.0, for code scanning: rules with their pages, chains as code flows, fixes, stable fingerprints."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import quote

from phobos import __version__
from phobos.check import registry
from phobos.check.baseline import Fingerprints
from phobos.check.render.report import Listing, Report
from phobos.check.rule import url
from phobos.diagnostic import Diagnostic, Fix, Severity, Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVEL: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_FLOWS = ("PH203", "PH204", "PH205", "PH215")  # a chain from what varies to the barrier


def render(report: Report) -> str:
    used = sorted({d.code for listing in report.listings for d in listing.diagnostics})
    results: list[dict[str, Any]] = []
    for listing in report.listings:
        prints = Fingerprints(listing.name, listing.text)
        results += [_result(d, listing, prints, used.index(d.code)) for d in listing.diagnostics]
    run = {
        "tool": {
            "driver": {
                "name": "Phobos tools",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(code) for code in used],
            }
        },
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": _uri(listing.name)}} for listing in report.listings],
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(code: str) -> dict[str, Any]:
    rule, manual = registry.rule(code), registry.manual(code)
    sections = [f"## {heading}\n\n{body}" for heading, body in manual.sections]
    what = manual.sections[0][1] if manual.sections else manual.summary
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": manual.summary},
        "fullDescription": {"text": " ".join(what.split())},
        "help": {
            "text": "\n\n".join([manual.summary, *sections]),
            "markdown": registry.page(code),
        },
        "helpUri": url(code),
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
        "properties": {"tags": ["correctness" if code < "PH6" else "maintainability"]},
    }  # fmt: skip


def _result(diagnostic: Diagnostic, listing: Listing, prints: Fingerprints, index: int) -> dict[str, Any]:
    message = [diagnostic.message if diagnostic.message.endswith(".") else diagnostic.message + "."]
    message += diagnostic.notes
    if diagnostic.help:
        message.append(f"Help: {diagnostic.help}")
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": _LEVEL[diagnostic.severity],
        "message": {"text": "\n".join(message)},
        "locations": [_location(diagnostic.span, listing, diagnostic.label)],
        "partialFingerprints": {"phobosFinding/v1": prints.unique(diagnostic)},
    }
    if diagnostic.related:
        result["relatedLocations"] = [
            {"id": number, **_location(related.span, listing, related.message)}
            for number, related in enumerate(diagnostic.related, 1)
        ]
        if diagnostic.code in _FLOWS:
            steps = [_location(related.span, listing, related.message) for related in reversed(diagnostic.related)]
            steps.append(_location(diagnostic.span, listing, diagnostic.label or diagnostic.message))
            flow = {"threadFlows": [{"locations": [{"location": step} for step in steps]}]}
            result["codeFlows"] = [flow]
    if diagnostic.fix is not None and diagnostic.fix.edits:
        result["fixes"] = [_fix(diagnostic.fix, listing)]
    return result


def _location(span: Span, listing: Listing, message: str = "") -> dict[str, Any]:
    region = _region(span, listing)
    region["snippet"] = {"text": listing.text[span.start : span.end] or "\n"}
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(listing.name)}, "region": region}}
    if message:
        location["message"] = {"text": message}
    return location


def _region(span: Span, listing: Listing) -> dict[str, Any]:
    row, column = listing.lines.position(span.start)
    last, end_column = listing.lines.position(span.end)
    return {"startLine": row + 1, "startColumn": column + 1, "endLine": last + 1, "endColumn": end_column + 1}


def _fix(fix: Fix, listing: Listing) -> dict[str, Any]:
    return {
        "description": {"text": fix.message},
        "artifactChanges": [
            {
                "artifactLocation": {"uri": _uri(listing.name)},
                "replacements": [
                    {"deletedRegion": _region(edit.span, listing), "insertedContent": {"text": edit.content}}
                    for edit in fix.edits
                ],
            }
        ],
    }


def _uri(name: str) -> str:
    path = name.replace(os.sep, "/")
    if os.path.isabs(name):
        return "file://" + quote(path if path.startswith("/") else "/" + path, errors="surrogateescape")
    return quote(path.removeprefix("./"), errors="surrogateescape")

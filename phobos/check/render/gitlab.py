"""GitLab's Code Quality report."""

from __future__ import annotations

import json
from typing import Any

from phobos.check.baseline import Fingerprints
from phobos.check.render.report import Report

_LEVEL = {"error": "critical", "warning": "major", "info": "info"}


def render(report: Report) -> str:
    issues: list[dict[str, Any]] = []
    for listing in report.listings:
        prints = Fingerprints(listing.name, listing.text)
        for diagnostic in listing.diagnostics:
            row, column = listing.lines.position(diagnostic.span.start)
            last, end_column = listing.lines.position(diagnostic.span.end)
            issues.append({
                "type": "issue",
                "check_name": diagnostic.code,
                "description": f"{diagnostic.name}: {diagnostic.message}",
                "categories": ["Bug Risk"],
                "severity": _LEVEL[diagnostic.severity],
                "fingerprint": prints.unique(diagnostic),
                "location": {
                    "path": listing.name.replace("\\", "/").removeprefix("./"),
                    "positions": {
                        "begin": {"line": row + 1, "column": column + 1},
                        "end": {"line": last + 1, "column": end_column + 1},
                    },
                },
            })  # fmt: skip
    return json.dumps(issues, indent=2, ensure_ascii=False) + "\n"

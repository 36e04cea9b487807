"""`phobos check --statistics`: how often each rule speaks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from phobos.check import registry

if TYPE_CHECKING:
    from phobos.cli.check import Checked


def table(checked: list[Checked], form: str) -> str:
    """Counts by rule, most frequent first; JSON where the output format is one."""
    counts = Counter((d.code, d.severity) for one in checked for d in one.shown)
    fixable = Counter(
        (d.code, d.severity) for one in checked for d in one.shown if d.fix and d.fix.applicability == "safe"
    )
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if form in ("json", "json-lines"):
        import json

        listed = [
            {"code": c, "name": registry.names()[c], "severity": s, "count": n, "fixable": fixable[c, s]}
            for (c, s), n in rows
        ]
        return json.dumps(listed, indent=2) + "\n"
    if not rows:
        return "No findings.\n"
    width = len(str(rows[0][1]))
    names = max(len(registry.names()[code]) for (code, _), _ in rows)
    return "".join(
        f"{n:>{width}}  {code}  {registry.names()[code]:<{names}}  {severity}"
        f"{f'  [{fixable[code, severity]} fixable]' if fixable[code, severity] else ''}\n"
        for (code, severity), n in rows
    )

"""Sums that long runs keep in a file of their own: Markdown for people, and one line of JSON from which the next run
goes on. What is summed is the runs' business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def table(rows: Mapping[str, object]) -> str:
    return "\n".join(["| what | count |", "|---|---|", *(f"| {name} | {count} |" for name, count in rows.items())])


def share(count: int, of: int) -> str:
    return f"{count} ({100 * count / of:.1f} %)" if of else str(count)


def listed(lines: list[str]) -> str:
    """Sentences one a line; "Nothing." where there are none."""
    return "\n".join(f"- {' '.join(line.split())}" for line in lines) or "Nothing."


def page(heading: str, introduction: str, sections: Mapping[str, str], numbers: Mapping[str, object]) -> str:
    """The file: sections by their headings, the first without one (""), and the numbers as a comment at its end."""
    parts = [f"# {heading}", introduction]
    for name, text in sections.items():
        parts += [f"## {name}", text] if name else [text]
    kept = json.dumps(numbers).replace(">", "\\u003e")  # a text among them may not end the comment
    return "\n\n".join([*parts, f"<!-- sums: {kept} -->"]) + "\n"


def numbers_of(text: str) -> dict[str, Any]:
    """The numbers that a file holds; none where it holds none."""
    found = re.search(r"<!-- sums: (.*) -->", text)
    known: dict[str, Any] = json.loads(found[1]) if found else {}
    return known


def text_of(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""

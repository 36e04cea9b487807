"""Applying fixes: those allowed, never overlapping, again until nothing changes; and inserting suppressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from phobos.check.configuration import Configuration
from phobos.check.engine import findings
from phobos.check.suppressions import MENDED
from phobos.diagnostic import Diagnostic, Edit
from phobos.syntax.lines import LineIndex
from phobos.value import value

ROUNDS = 50  # a fix that brings back what another takes away must end somewhere


@value
class Fixed:
    """The text after fixing, and how many findings of each code went."""

    text: str
    counts: dict[str, int]


def fix_all(
    path: str, text: str, configuration: Configuration, unsafe: bool,
    wanted: Callable[[Diagnostic], bool] = lambda diagnostic: True,
) -> Fixed:  # fmt: skip
    """Apply every allowed fix of the findings that are `wanted` until none is left.

    A round whose result has more syntax errors than before is taken back, and its fixes are not tried again.
    """
    counts: dict[str, int] = {}
    refused: set[tuple[str, str]] = set()
    found = findings(path, text, configuration)
    for _ in range(ROUNDS):
        chosen = [d for d in _without_overlap(found, unsafe) if wanted(d) and (d.code, _shown(d, text)) not in refused]
        if not chosen:
            break
        changed = apply_edits(text, [edit for d in chosen if d.fix is not None for edit in d.fix.edits])
        after = findings(path, changed, configuration)
        if changed == text or _syntax_errors(after) > _syntax_errors(found):
            refused |= {(d.code, _shown(d, text)) for d in chosen}
            continue
        for diagnostic in chosen:
            counts[diagnostic.code] = counts.get(diagnostic.code, 0) + 1
        text, found = changed, after
    return Fixed(text, counts)


def _without_overlap(found: Iterable[Diagnostic], unsafe: bool) -> list[Diagnostic]:
    allowed = ("safe", "unsafe") if unsafe else ("safe",)
    taken: list[tuple[int, int]] = []
    chosen: list[Diagnostic] = []
    for diagnostic in found:
        fix = diagnostic.fix
        if fix is None or not fix.edits or fix.applicability not in allowed:
            continue
        ranges = [(edit.span.start, edit.span.end) for edit in fix.edits]
        if any(start <= e and s <= end for start, end in ranges for s, e in taken):
            continue
        taken += ranges
        chosen.append(diagnostic)
    return chosen


def _shown(diagnostic: Diagnostic, text: str) -> str:
    return text[diagnostic.span.start : diagnostic.span.end]


def _syntax_errors(found: Iterable[Diagnostic]) -> int:
    return sum(d.code.startswith("PH0") and d.severity == "error" for d in found)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with non-overlapping edits made."""
    out: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.span.start, e.span.end)):
        out += [text[at : edit.span.start], edit.content]
        at = edit.span.end
    return "".join([*out, text[at:]])


def add_ignores(text: str, found: Iterable[Diagnostic]) -> str:
    """The text with a suppression at the end of the first line of each finding; one that stands there is extended."""
    import re

    lines = LineIndex(text)
    by_row: dict[int, list[str]] = {}
    for diagnostic in found:
        if diagnostic.code in MENDED:
            continue
        codes = by_row.setdefault(lines.line_of(diagnostic.span.start), [])
        if diagnostic.code not in codes:
            codes.append(diagnostic.code)
    out = list(text)
    present = re.compile(r"//\s*phobos:\s*ignore\[([^\]]*)\]")
    for row in sorted(by_row, reverse=True):
        line, start = lines.line_text(row), lines.starts[row]
        listed = present.search(line)
        codes = by_row[row]
        if listed:
            at = start + listed.end(1)
            known = [word.strip() for word in listed.group(1).split(",") if word.strip()]
            out[at:at] = ", ".join(["", *(c for c in codes if c not in known)] if known else codes)
        else:
            comment = f"// phobos: ignore[{', '.join(codes)}]"
            if "//" in line:  # a comment of its own must begin one
                indent = line[: len(line) - len(line.lstrip())]
                out[start:start] = f"{indent}{comment}" + ("\r\n" if "\r\n" in text else "\n")
            else:
                at = start + len(line.rstrip())
                out[at:at] = f"  {comment}"
    return "".join(out)

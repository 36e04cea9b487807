"""The form of the suites `tests/check/*.md`: a heading is a test's name, a fenced `ph` block its file.

Expectations stand in comments at the end of a line: `// error[PH203]`, `// warning[PH210] "part of the message"`,
alternatives parted by `|`, several parted by `,`. Every error and warning of a file must be listed; notes may be.
A listed place counts when it is the primary or a related place of a finding; a finding that is not listed is judged
by its primary place. A fenced `toml` block before it is the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from phobos.check import Configuration, findings, registry
from phobos.check.configuration import DEFAULT, parse
from phobos.diagnostic import Diagnostic
from phobos.syntax.lines import LineIndex

EXPECTED = re.compile(r'(error|warning|info)\[(PH\d{3})\](?:\s+"([^"]*)")?')


@dataclass(frozen=True)
class Expectation:
    """One place: `alternatives` of (severity, code, part of the message)."""

    row: int
    alternatives: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    toml: str
    where: str


def cases(path: Path) -> Iterator[Case]:
    """The cases of a suite, in order."""
    heading, toml = path.stem, ""
    block: list[str] | None = None
    info = ""
    count = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if block is not None:
            if line.strip() == "```":
                body = "\n".join(block) + "\n"
                if info == "toml":
                    toml = body
                elif info == "ph":
                    count += 1
                    yield Case(heading if count == 1 else f"{heading} ({count})", body, toml, f"{path.name}:{number}")
                block = None
            else:
                block.append(line)
        elif line.startswith("#"):
            heading, toml, count = line.lstrip("# ").strip(), "", 0
        elif line.startswith("```"):
            block, info = [], line[3:].strip()


def expectations(text: str) -> list[Expectation]:
    out: list[Expectation] = []
    for row, line in enumerate(text.split("\n")):
        comment = line.partition("//")[2]
        if not EXPECTED.search(comment):
            continue
        for part in comment.split(","):
            found = [(m[1], m[2], m[3] or "") for m in EXPECTED.finditer(part)]
            if found:
                out.append(Expectation(row, tuple(found)))
    return out


def judge(text: str, configuration: Configuration = DEFAULT, path: str = "case.ph") -> list[str]:
    """What is wrong with the findings of a text, as sentences; empty when every expectation is met."""
    return compare(text, findings(path, text, configuration))


def compare(text: str, found: list[Diagnostic]) -> list[str]:
    lines = LineIndex(text)
    wanted = expectations(text)
    wrong: list[str] = []
    listed: set[int] = set()
    for expectation in wanted:
        met = False
        for number, diagnostic in enumerate(found):
            rows = {lines.line_of(diagnostic.span.start)} | {lines.line_of(r.span.start) for r in diagnostic.related}
            if expectation.row in rows and _meets(diagnostic, expectation):
                met = True
                listed.add(number)
        if not met:
            shown = " | ".join(f"{s}[{c}]" + (f' "{m}"' if m else "") for s, c, m in expectation.alternatives)
            wrong.append(f"line {expectation.row + 1}: expected {shown}")
    for number, diagnostic in enumerate(found):
        if diagnostic.severity not in registry.rule(diagnostic.code).severities:
            wrong.append(f"{diagnostic.code} does not say that it is ever {diagnostic.severity}: {diagnostic.message}")
        if diagnostic.severity != "info" and number not in listed:
            row = lines.line_of(diagnostic.span.start) + 1
            wrong.append(f"line {row}: unexpected {diagnostic.severity}[{diagnostic.code}] {diagnostic.message}")
    return wrong


def _meets(diagnostic: Diagnostic, expectation: Expectation) -> bool:
    said = "\n".join([diagnostic.message, diagnostic.label, *(r.message for r in diagnostic.related)])
    return any(
        diagnostic.severity == severity and diagnostic.code == code and part in said
        for severity, code, part in expectation.alternatives
    )


def configured(case: Case) -> Configuration:
    return parse("phobos.toml", case.toml) if case.toml else Configuration()

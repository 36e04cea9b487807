"""Caret fixtures: Markdown files of small sources with a `$0` where the cursor is, and what the editor answers there.

A file under `fixtures/` is a feature. A heading is a test's name, the `ph` fence its source (`$0 ... $0` is a
selection), the fence after it the answer as text. A `has` fence lists lines that must be in the answer instead, in
any order, a `lacks` fence what must not. `PHOBOS_UPDATE=1` writes the answers of the fences that hold the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from phobos.check import findings
from phobos.ide.document import Document
from phobos.semantics.module import analyse
from phobos.syntax import parse
from phobos.syntax.lines import LineIndex

HERE = Path(__file__).parent / "fixtures"
CARET = "$0"
NAME = "/code/kernels/test.ph"

_CASE = re.compile(r"^## (?P<name>.+)\n+```ph(?P<options>.*)\n(?P<source>(?:.*\n)*?)```\n", re.MULTILINE)
_FENCE = re.compile(r"\s*```(?P<kind>has|lacks|text)\n(?P<body>(?:.*\n)*?)```\n")


@dataclass
class Case:
    feature: str
    name: str
    options: dict[str, str]
    source: str
    answers: dict[str, list[str]] = field(default_factory=dict)
    place: tuple[int, int] = (0, 0)  # of the `text` body in its file

    @property
    def text(self) -> str:
        return self.source.replace(CARET, "")

    @property
    def broken(self) -> bool:
        return any(item.problems for _, item in parse(self.text).items)


def cases() -> Iterator[Case]:
    for path in sorted(HERE.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        found = list(_CASE.finditer(text))
        assert len(found) == text.count("\n## ") + text.startswith("## "), f"a case in {path.name} is not well formed"
        for match in found:
            options = dict(word.split("=", 1) for word in match["options"].split())
            case = Case(path.stem, match["name"].strip(), options, match["source"])
            at = match.end()
            while (fence := _FENCE.match(text, at)) is not None:
                case.answers[fence["kind"]] = fence["body"].splitlines()
                if fence["kind"] == "text":
                    case.place = fence.span("body")
                at = fence.end()
            yield case


def document(text: str, path: str = NAME) -> Document:
    return Document(path, text, analyse(path, text), LineIndex(text), tuple(findings(path, text)))


def update(case: Case, answer: str) -> None:
    """Write an answer into the fixture file. Places of later cases move, so they are looked up anew."""
    path = HERE / f"{case.feature}.md"
    fresh = next(c for c in cases() if (c.feature, c.name) == (case.feature, case.name))
    text = path.read_text(encoding="utf-8")
    start, end = fresh.place
    path.write_text(text[:start] + answer + ("\n" if answer else "") + text[end:], encoding="utf-8")

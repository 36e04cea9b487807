"""What inputs grow from: this project's kernels, and for every rule the texts that its page and its suites hold.

The first ones raise a rule each, so that a run that begins with them has met every code.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from phobos.check import Configuration, registry
from phobos.check.configuration import DEFAULT
from phobos.value import value
from tests.check.markdown import cases, configured

ROOT = Path(__file__).resolve().parents[2]
SHORT = 4_000  # letters of a text that is taken as it is


@value
class Seed:
    """A text and the configuration under which it says what it is kept for."""

    text: str
    configuration: Configuration = DEFAULT


@cache
def seeds() -> tuple[Seed, ...]:
    """All of them, those first that raise a rule each."""
    bad, others = [], []
    for code in registry.stems():
        page = registry.manual(code)
        bad += [Seed(text) for text in page.bad[:1]]
        others += [Seed(text) for text in (*page.bad[1:], *page.good)]
    first: dict[str, Seed] = {}
    for suite in sorted((ROOT / "tests/check").glob("*.md")):
        for case in cases(suite):
            seed = Seed(case.text, configured(case))
            if case.name[:5] in registry.stems() and case.name[:5] not in first and f"[{case.name[:5]}]" in case.text:
                first[case.name[:5]] = seed
            else:
                others.append(seed)
    for folder in ("examples", "tests/corpus"):
        others += [Seed(path.read_text(encoding="utf-8")) for path in sorted((ROOT / folder).glob("*.ph"))]
    for page_file in sorted((ROOT / "docs").glob("*.md")):
        listed = re.findall(r"^```ph[^\n]*\n(.*?)^```", page_file.read_text(encoding="utf-8"), re.M | re.S)
        others += [Seed(text) for text in listed]
    return tuple(seed for seed in [*bad, *first.values(), *others] if len(seed.text) <= SHORT)


@cache
def raising() -> int:
    """How many of the first seeds are there to raise a rule each."""
    bad = sum(bool(registry.manual(code).bad) for code in registry.stems())
    return bad + sum(1 for _ in registry.stems())

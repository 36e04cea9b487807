"""Every small kernel of `kernels/*.md` means what it says there, and nothing else is said of it."""

from __future__ import annotations

import pytest

from .build_cases import Case, cases, said, type_of

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case: Case) -> None:
    module, found = said(case)
    got = [(f.severity, f.code, case.text[f.start : f.end]) for f, _ in found]
    explained = "\n".join(f"  {f.severity} {f.code} {case.text[f.start:f.end]!r}: {message}" for f, message in found)
    if case.at:
        wanted = [
            (severity, code, start, end)
            for (severity, code, _), (start, end) in sorted(
                zip(case.findings, case.at, strict=True), key=lambda pair: (pair[1][0], pair[0][1])
            )
        ]
        placed = [(f.severity, f.code, f.start, _clip(case.text, f.start, f.end)) for f, _ in found]
        assert placed == wanted, f"said:\n{explained}"
        said_in_order = [message for _, message in found]
        parts = [m for _, m in sorted(zip(case.at, case.messages, strict=True), key=lambda pair: pair[0])]
        for message, part in zip(said_in_order, parts, strict=True):
            assert part in message
    else:
        assert sorted(got) == sorted(case.findings), f"said:\n{explained}"
    for name, type_ in case.types:
        assert type_of(module, name) == type_


def _clip(text: str, start: int, end: int) -> int:
    """Where a mark on one line has to end for a place that may go on."""
    newline = text.find("\n", start)
    return min(end, newline)


def test_there_are_many() -> None:
    assert len(CASES) >= 300

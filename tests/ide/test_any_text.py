"""Half of any kernel, with anything typed into it, at any place: every answer comes, and a hover fits a screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phobos.ide.hover import MOST_LINES, hover
from tests.ide.answers import ANSWERS
from tests.ide.fixture import document

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    path.read_text(encoding="utf-8")
    for folder in ("examples", "tests/corpus")
    for path in sorted((ROOT / folder).glob("*.ph"))
]
TYPED = (
    "", "(", "[", "{", "}", "ctx.", "@", "let x = ", "X[", ":+", "\n", "= = ", "kernel ", "fn f(", "𝛼",
    "// phobos: ignore[",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:The recursion limit will not be reset")  # deep code is built deep, on purpose
@settings(max_examples=120)
@given(
    st.sampled_from(TEXTS), st.floats(0, 1), st.floats(0, 1), st.sampled_from(TYPED), st.sampled_from(sorted(ANSWERS))
)
def test_every_answer_comes(text: str, where: float, end: float, typed: str, feature: str) -> None:
    cut = text[: int(end * len(text))]
    offset = int(where * len(cut))
    broken = cut[:offset] + typed + cut[offset:]
    at = [offset + len(typed), min(len(broken), offset + len(typed) + 40)]
    options = {"new": "renamed"} | ({"typed": "}"} if feature == "format" and typed == "}" else {})
    if feature not in ("tokens", "format"):
        at = at[:1]
    ANSWERS[feature](document(broken), at, options)


@pytest.mark.parametrize("text", TEXTS[:12], ids=range(len(TEXTS[:12])))
def test_a_hover_is_at_most_a_screenful(text: str) -> None:
    seen = document(text)
    said = 0
    for word in re.finditer(r"[^\W\d]\w*|:\+|@", text):
        found = hover(seen, word.start())
        if found is not None:
            said += 1
            assert found.markdown.count("\n") < MOST_LINES + 1
            assert found.markdown.count("```") % 2 == 0
            assert found.range.start <= word.start() <= found.range.end
    assert said > 10

"""Every caret fixture, and what must hold of them all."""

from __future__ import annotations

import os
import re

import pytest

from tests.ide.answers import ANSWERS
from tests.ide.fixture import CARET, Case, cases, document, update

CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.feature}: {case.name}")
def test_fixture(case: Case) -> None:
    text = case.text
    carets = enumerate(re.finditer(re.escape(CARET), case.source))
    at = [match.start() - number * len(CARET) for number, match in carets]
    answer = ANSWERS[case.feature](document(text), at or [0], case.options)
    answer = re.sub(r"file:///\S*/phobos/check/pages/(PH\d+)\.md", r"page:\1", answer)  # where this is installed
    assert case.answers, "a case needs an answer"
    for line in case.answers.get("has", ()):
        assert line in answer, f"the answer lacks {line!r}; it is\n{answer}"
    for line in case.answers.get("lacks", ()):
        assert line not in answer, f"the answer has {line!r}; it is\n{answer}"
    if "text" in case.answers:
        if os.environ.get("PHOBOS_UPDATE"):
            update(case, answer)
        else:
            assert answer == "\n".join(case.answers["text"])


def test_a_third_of_the_fixtures_do_not_parse() -> None:
    broken = sum(case.broken for case in CASES)
    assert broken * 3 >= len(CASES), f"{broken} of {len(CASES)} stand in code that does not parse"


def test_every_feature_has_a_fixture_in_code_that_does_not_parse() -> None:
    assert {case.feature for case in CASES if case.broken} == set(ANSWERS)

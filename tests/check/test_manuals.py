"""The manual page of every rule: its headings, and its examples, which run."""

from __future__ import annotations

import re

import pytest

from phobos.check import Configuration, findings, registry

HEADINGS = ("What it does", "Why it is bad", "Example", "Fix", "Limits")
CODES = list(registry.stems())


def configuration_of(example: str) -> Configuration:
    target = re.search(r"^// check: --target (\S+)$", example, re.MULTILINE)
    return Configuration(target=(target[1],)) if target else Configuration()


@pytest.mark.parametrize("code", CODES)
def test_the_page_has_its_headings(code: str) -> None:
    manual = registry.manual(code)
    assert tuple(heading for heading, _ in manual.sections) == HEADINGS
    assert all(body for _, body in manual.sections)
    assert manual.summary.endswith(".") and len(manual.summary) <= 130
    assert manual.bad and manual.good


@pytest.mark.parametrize("code", CODES)
def test_the_bad_example_is_reported_and_the_good_one_is_not(code: str) -> None:
    rule, manual = registry.rule(code), registry.manual(code)
    for example in manual.bad:
        found = findings("bad.ph", example, configuration_of(example))
        assert [d for d in found if d.code == code], [f"{d.code} {d.message}" for d in found]
        graver = [d for d in found if d.severity == "error" and d.code != code]
        assert not graver, [f"{d.code} {d.message}" for d in graver]
        assert all(d.severity != "error" for d in found if d.code == code) or rule.severity == "error"
    for example in manual.good:
        found = findings("good.ph", example, configuration_of(example))
        said = [f"{d.code} {d.message}" for d in found if d.code == code or d.severity != "info"]
        assert not said


def test_the_catalogue_is_the_one_that_is_promised() -> None:
    assert " ".join(CODES) == " ".join(f"PH{n:03}" for n in PROMISED)


PROMISED = [
    *range(1, 6), *range(101, 118), *range(201, 220), *range(301, 310), *range(401, 410), *range(501, 509),
    *range(601, 605), *range(901, 904),
]  # fmt: skip

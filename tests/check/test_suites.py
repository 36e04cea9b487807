"""Every case of every Markdown suite says exactly what it expects."""

from __future__ import annotations

from pathlib import Path

import pytest

from phobos.check import findings, registry
from tests.check.markdown import Case, cases, compare, configured, expectations, judge

SUITES = sorted(Path(__file__).parent.glob("*.md"))
CASES = [case for suite in SUITES for case in cases(suite)]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.where} {case.name}" for case in CASES])
def test_case(case: Case) -> None:
    found = findings("case.ph", case.text, configured(case))
    wrong = compare(case.text, found)
    code, _, kind = case.name.partition(": ")
    if kind.startswith("near miss") and f"[{code}]" not in case.text:
        wrong += [f"a near miss, and yet {code} says: {one.message}" for one in found if one.code == code]
    assert not wrong, f"{case.where} {case.name}\n" + "\n".join(wrong)


def test_a_missing_expectation_and_a_missing_finding_both_fail() -> None:
    text = "@persistent(4)\nkernel k(X: tensor<f32>[N]) {\n  X[0 :+ 1] = 0.0\n}\n"
    assert judge(text)
    assert not judge(text.replace("(4)", "(4)  // error[PH209]"))
    assert judge(text.replace("(4)", "(4)  // error[PH209], error[PH201]"))
    assert compare("x  // warning[PH004]\n", [])


def test_every_rule_has_five_cases() -> None:
    """Bad ones, near misses that stay quiet, in functions, in loops, at boundaries."""
    counts = {code: sum(case.name.startswith(f"{code}:") for case in CASES) for code in registry.stems()}
    assert {code: count for code, count in counts.items() if count < 5} == {}
    quiet = {case.name[:5] for case in CASES if ": near miss" in case.name}
    assert sorted(set(registry.stems()) - quiet) == []


def test_a_rule_names_the_severities_that_it_has_and_no_other() -> None:
    """What a rule's page names is met by a case; `compare` refuses a finding of a severity that is not named."""
    met = {
        (code, severity) for case in CASES for one in expectations(case.text) for severity, code, _ in one.alternatives
    }
    named = {(code, severity) for code in registry.stems() for severity in registry.rule(code).severities}
    assert sorted(met ^ named) == []

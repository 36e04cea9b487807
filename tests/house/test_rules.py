"""What holds for all rules: one a file, in the list exactly when they read facts, named in no second place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phobos.check import registry

ROOT = Path(__file__).resolve().parents[2]
CODES = list(registry.stems())


@pytest.mark.parametrize("code", CODES)
def test_a_rule_with_a_check_is_in_the_list_and_only_such_a_rule(code: str) -> None:
    assert hasattr(registry.module(code), "check") == (code in registry.FACT_RULES)


@pytest.mark.parametrize("code", CODES)
def test_a_rule_declares_what_its_file_is_called(code: str) -> None:
    rule = registry.rule(code)
    assert rule.code == code and rule.name == registry.names()[code]
    assert registry.code_of(rule.name) == registry.code_of(code.lower()) == code


def test_names_are_unique_and_read_well_after_ignore() -> None:
    names = list(registry.names().values())
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)
    assert not [name for name in names if name.startswith(("no-", "use-", "avoid-", "prefer-"))]


def test_every_code_that_is_reported_has_a_rule() -> None:
    """Codes stand as strings in the parser, the builder and the facts; each must have its file."""
    used = {
        code
        for path in (ROOT / "phobos").rglob("*.py")
        for code in re.findall(r'"(PH\d{3})"', path.read_text(encoding="utf-8"))
    }
    assert used <= set(CODES)


def test_selectors() -> None:
    assert registry.expand("ALL") == frozenset(CODES)
    assert registry.expand("PH2") == registry.expand("ph2xx") == {code for code in CODES if code.startswith("PH2")}
    assert registry.expand("PH203") == registry.expand("barrier-in-divergent-control-flow") == {"PH203"}
    assert registry.expand("PH8") is None and registry.expand("nothing") is None and registry.expand("P") is None

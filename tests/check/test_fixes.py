"""Fixes applied: none into another, none that breaks the text, no word twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from phobos.check import findings, fixes
from phobos.check.configuration import DEFAULT
from phobos.check.fixes import add_ignores, fix_all
from phobos.diagnostic import Diagnostic, Edit, Fix, Span

TEXT = "kernel k(X: tensor<f32>[N]) {\n  X[ctx.block.x] = 1.0\n}\n"
Findings = Callable[[str, str, object], list[Diagnostic]]


def putting(content: str, unless: str, times: int) -> Findings:
    """A checker that finds, besides what there is, that `content` is missing at the very beginning."""

    def found(path: str, text: str, _: object) -> list[Diagnostic]:
        place = Span(path, 0, 0)
        fix = Fix(f"add {content}", "safe", (Edit(place, content),))
        missing = Diagnostic("PH112", "unused", "warning", "something is missing", place, fix=fix)
        return [missing] * times * (unless not in text) + findings(path, text, DEFAULT)

    return found


def test_two_fixes_that_put_something_at_one_place_put_it_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixes, "findings", putting("@launch(64)\n", unless="@launch", times=2))
    done = fix_all("k.ph", TEXT, DEFAULT, False)
    assert done.text == "@launch(64)\n" + TEXT and done.counts == {"PH112": 1}


@pytest.mark.parametrize(
    "head, left",
    [
        ("@persistent\n", ""),
        ("@launch(64)\n  @persistent  \n", "@launch(64)\n"),
        ("@launch(64) @persistent\n", "@launch(64)\n"),
        ("@persistent @launch(64)\r\n", "@launch(64)\r\n"),
        ("@persistent // why\n", "// why\n"),
        ("@launch(64)\r\n@persistent\r\n", "@launch(64)\r\n"),
    ],
)
def test_what_is_taken_out_leaves_neither_an_empty_line_nor_blanks(head: str, left: str) -> None:
    kernel = "kernel k(X: tensor<f32>[N]) {\n  X[0] = 1.0\n}\n"
    done = fix_all("k.ph", head + kernel, DEFAULT, True)
    assert done.text == left + kernel and done.counts == {"PH217": 1}


def test_a_fix_that_breaks_the_text_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixes, "findings", putting("}", unless="nothing", times=1))
    done = fix_all("k.ph", TEXT, DEFAULT, False)
    assert done.text == TEXT and done.counts == {}


def test_a_rule_that_a_line_names_already_is_not_named_again() -> None:
    place = Span("k.ph", TEXT.index("X["), TEXT.index("X[") + 1)
    found = [Diagnostic("PH409", "grid-not-inferable", "info", "", place)]
    once = add_ignores(TEXT, found)
    assert once.count("// phobos: ignore[PH409]") == 1 and add_ignores(once, found) == once

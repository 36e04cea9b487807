"""Comments that speak to Phobos, by their form."""

from __future__ import annotations

import pytest

from phobos.syntax.pragmas import Kind, pragma_of, pragmas
from phobos.syntax.tokens import tokenize

FORMS: dict[str, tuple[Kind, list[str], str]] = {
    "// phobos: ignore[PH203] the last block only": ("ignore", ["PH203"], "the last block only"),
    "//phobos:ignore[PH203,race-between-blocks]": ("ignore", ["PH203", "race-between-blocks"], ""),
    "// phobos: ignore [ PH203 , PH501 ] both": ("ignore", ["PH203", "PH501"], "both"),
    "// phobos: ignore-file[PH601]": ("ignore-file", ["PH601"], ""),
    "// phobos: assume uniform(x) read from a parameter": ("assume-uniform", ["x"], "read from a parameter"),
    "// phobos: assume  uniform ( naïve )": ("assume-uniform", ["naïve"], ""),
    "// phobos: ignore": ("ignore", [], ""),
    "// phobos: ignore[]": ("ignore", [], ""),
    "// phobos: ignore all of it": ("ignore", [], "all of it"),
    "// phobos: ignore-file": ("ignore-file", [], ""),
    "// phobos: ignore[PH203": ("ignore", ["PH203"], ""),
    "// phobos: ignroe[PH203]": ("unknown", ["ignroe"], "ignroe[PH203]"),
    "// phobos: ignore-line[PH203]": ("unknown", ["ignore-line"], "ignore-line[PH203]"),
    "// phobos: assume uniform(x + 1)": ("unknown", ["assume"], "assume uniform(x + 1)"),
    "// phobos: todo": ("unknown", ["todo"], "todo"),
    "// phobos: [PH203] one block": ("unknown", ["[PH203]"], "[PH203] one block"),
    "// Phobos: ignore[PH203] why": ("misaddressed", ["// Phobos:"], "ignore[PH203] why"),
    "//phobos ignore-file[PH203]": ("misaddressed", ["//phobos"], "ignore-file[PH203]"),
    "/// phobos: assume uniform(x)": ("misaddressed", ["/// phobos:"], "assume uniform(x)"),
    "// phobos:": ("unknown", [], ""),
}


@pytest.mark.parametrize("text", FORMS)
def test_forms(text: str) -> None:
    (comment,) = tokenize("  " + text).comments
    pragma = pragma_of(comment)
    assert pragma is not None
    kind, words, reason = FORMS[text]
    assert (pragma.kind, [w.text for w in pragma.words], pragma.reason) == (kind, words, reason)
    assert [("  " + text)[w.start : w.end] for w in pragma.words] == words
    assert (pragma.start, pragma.end) == (2, 2 + len(text))
    assert pragma.is_blanket == (kind in ("ignore", "ignore-file") and not words)


def test_other_comments_are_none() -> None:
    for text in (
        "// ignore[PH203]", "// see phobos: ignore", "// run: kernel=x", "//", "// phoboss: ignore[x]", "// PHOBOS",
        "// Phobos: a moon", "// phobos is a language", "// phobos ignores [1] and we do", "// phobos, ignore it",
    ):  # fmt: skip
        (comment,) = tokenize(text).comments
        assert pragma_of(comment) is None


def test_pragmas_of_a_text_in_order() -> None:
    comments = tokenize("// phobos: ignore-file[A]\nx // plain\ny // phobos: ignore[B]\n").comments
    assert [p.words[0].text for p in pragmas(comments)] == ["A", "B"]

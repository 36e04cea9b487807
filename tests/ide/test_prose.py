"""Comments of the user's inside answers in Markdown: they show as they stand, and nothing in them becomes markup."""

from __future__ import annotations

import re
from html import unescape

import pytest
from markdown_it import MarkdownIt

from phobos.ide.describe import prose
from phobos.ide.hover import hover
from phobos.ide.signature import signature
from phobos.lsp.convert import plain
from tests.ide.fixture import document

COMMENTS = [
    "![seen](https://example.com/who.png) and [a link](command:run)",
    "<img src=x onerror=alert(1)> <b>bold</b> <!-- gone -->",
    "a * b * c, X_new and X_old, ~~never~~, &lt; 1",
    "``` a fence that nobody ends",
    "~~~",
    "a ` that nobody ends, and \\[ \\` \\\\ as they stand",
    "# no title",
    "``two`` of them",
]


@pytest.mark.parametrize("comment", COMMENTS)
def test_a_comment_shows_as_it_is(comment: str) -> None:
    html = MarkdownIt("commonmark").render(prose(comment))
    assert set(re.findall(r"<(\w+)", html)) <= {"p", "code"}
    shown = unescape(re.sub(r"</?\w+>", "", html)).strip()
    assert shown.replace("`", "") == comment.replace("`", "")
    assert plain(prose(comment)).replace("`", "") == comment.replace("`", "")


def test_code_in_a_comment_stays_code() -> None:
    html = MarkdownIt("commonmark").render(prose("adds `X[t] * 2` to *Y*"))
    assert html == "<p>adds <code>X[t] * 2</code> to *Y*</p>\n"


@pytest.mark.parametrize("comment", COMMENTS)
def test_neither_comment_nor_assumption_gets_a_hover_to_fetch_anything(comment: str) -> None:
    text = f"// {comment}\nkernel k(X: tensor<f32>[N]) {{\n  // phobos: assume uniform({comment})\n  X[0] = 1.0\n}}\n"
    for word in ("k(X", "assume"):
        found = hover(document(text), text.index(word))
        assert found is not None or word == "assume", "an assumption of more than a name is none"
        html = MarkdownIt("commonmark").render(found.markdown if found is not None else "")
        assert not re.findall(r"<(?:img|a|b|em|h1)\b", html), html


def test_a_signature_of_several_lines_is_shown_in_one_without_its_comments() -> None:
    text = "fn f(a: // ![two](x)\n    f32) -> f32 {\n  return a\n}\nkernel k(X: tensor<f32>[N]) {\n  X[0] = f(1.0)\n}\n"
    shown = signature(document(text), text.index("1.0"))
    assert shown is not None and shown.label == "f(a: f32) -> f32"

"""Offsets, lines and columns, against Python's own encodings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.syntax.lines import Encoding, LineIndex, line_at

ENCODINGS: list[Encoding] = ["utf-8", "utf-16", "utf-32"]
TEXTS = st.text(st.one_of(st.sampled_from("\r\n\u2028\x85\x0b\x0cab é𝄞\ud800\ufeff"), st.characters(codec=None)))


def units(text: str, encoding: Encoding) -> int:
    """How long a text is in an encoding, by Python's own encoder."""
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    name = encoding if encoding == "utf-8" else encoding + "-le"
    return len(text.encode(name, "surrogatepass")) // width


@given(TEXTS, st.sampled_from(ENCODINGS))
def test_columns_are_what_python_encodes(text: str, encoding: Encoding) -> None:
    index = LineIndex(text)
    lines = re.split(r"\r\n|\r|\n", text)
    assert len(index.starts) == len(lines)
    for number, line in enumerate(lines):
        start = index.starts[number]
        assert index.line_text(number) == line
        for column in range(len(line) + 1):
            # Two lone surrogates that make a pair are two characters here and one there.
            expected = sum(units(c, encoding) for c in line[:column])
            assert index.position(start + column, encoding) == (number, expected)
            assert index.offset(number, expected, encoding) == start + column


@given(TEXTS, st.integers(-2, 30), st.integers(-2, 60), st.sampled_from(ENCODINGS))
def test_places_beyond_the_text_are_clamped(text: str, line: int, column: int, encoding: Encoding) -> None:
    index = LineIndex(text)
    offset = index.offset(line, column, encoding)
    assert 0 <= offset <= len(text)
    if 0 <= line < len(index.starts):
        assert index.starts[line] <= offset <= index.line_end(line)
        found, at = index.position(offset, encoding)
        assert found == line and at <= max(column, 0)


@given(TEXTS, st.integers(-3, 200))
def test_offsets_beyond_the_text_are_clamped(text: str, offset: int) -> None:
    index = LineIndex(text)
    line, column = index.position(offset)
    assert 0 <= line < len(index.starts) and 0 <= column <= len(index.line_text(line))


@pytest.mark.parametrize(
    ("encoding", "column"), [("utf-8", 8), ("utf-16", 5), ("utf-32", 4)]
)  # é is 2, 1, 1 and the clef 4, 2, 1
def test_a_line_with_a_clef(encoding: Encoding, column: int) -> None:
    text = "first\r\n" + "aé𝄞b" + "\rthird"
    index = LineIndex(text)
    assert index.position(text.index("\rthird"), encoding) == (1, column)
    assert index.offset(1, column, encoding) == text.index("\rthird")
    assert index.position(text.index("third"), encoding) == (2, 0)


def test_inside_a_character_is_before_it() -> None:
    index = LineIndex("a𝄞b")
    assert [index.offset(0, c, "utf-16") for c in range(5)] == [0, 1, 1, 2, 3]
    assert [index.offset(0, c, "utf-8") for c in range(7)] == [0, 1, 1, 1, 1, 2, 3]


def test_between_cr_and_lf_is_the_end_of_the_line() -> None:
    assert LineIndex("ab\r\nc").position(3) == (0, 2)


@given(TEXTS, st.text("\r\n aé𝄞"), st.integers(0, 30), st.integers(0, 30))
def test_lines_after_an_edit_are_those_of_the_new_text(text: str, content: str, start: int, length: int) -> None:
    start = min(start, len(text))
    end = min(start + length, len(text))
    edited = LineIndex(text).edited(start, end, content)
    whole = LineIndex(text[:start] + content + text[end:])
    assert (edited.text, edited.starts, edited._ascii) == (whole.text, whole.starts, whole._ascii)


@pytest.mark.parametrize("text", ["\r", "a\rb", "\r\n", "a\r\nb", "\n\r", "\r\r\n\n", "a\nb\r\nc"])
@pytest.mark.parametrize("content", ["", "\r", "\n", "\r\n", "x", "\nx\r"])
def test_an_edit_joins_and_parts_line_ends(text: str, content: str) -> None:
    for start in range(len(text) + 1):
        for end in range(start, len(text) + 1):
            whole = LineIndex(text[:start] + content + text[end:])
            assert LineIndex(text).edited(start, end, content).starts == whole.starts


def test_only_the_three_line_ends_end_lines() -> None:
    assert LineIndex("a\u2028b\x85c\x0bd\x0ce").starts == [0]
    assert LineIndex("a\nb\rc\r\nd\n\r").starts == [0, 2, 4, 7, 9, 10]


@given(TEXTS)
def test_one_line_is_that_of_the_index(text: str) -> None:
    index = LineIndex(text)
    for offset in range(len(text) + 1):
        assert line_at(text, offset) == index.line_of(offset) + 1


def test_a_lone_surrogate_has_a_width() -> None:
    index = LineIndex("\ud800x")
    assert [index.position(1, e) for e in ENCODINGS] == [(0, 3), (0, 1), (0, 1)]

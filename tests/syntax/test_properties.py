"""What holds for every text, and for every tree."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from phobos.syntax import parse, tree
from phobos.syntax.format import FormatError, format_range, format_text
from phobos.syntax.tokens import END, tokenize
from tests.syntax.trees import files, forget, nodes_of, problems, show, sketch, whole

CHARACTERS = st.text(st.characters(codec=None), max_size=80)
FRAGMENTS = st.lists(
    st.sampled_from(
        [
            "kernel", "fn", "let", "var", "if", "else", "for", "in", "while", "break", "return", "k", "X", "ctx.",
            "range(", "{", "}", "(", ")", "[", "]", "<", ">", ",", ":", ":+", ";", "@", "=", "+=", "==", "+", "-", "!",
            "&&", ".", "->", "3", "1.5", "5a", "0x", "8²", "٣", "true", "tensor<f32>[N]", "// c\n", "\n", "\n\n",
            "\r", "\r\n", " ", "\t", "?", "\0",
            "é", "a\u0301", "\u200f", "\ud800", "\ufeff", "\u2028", "kernel k() {\n", "}\n",
        ]
    ),
    max_size=50,
).map(" ".join)  # fmt: skip
TEXTS = st.one_of(CHARACTERS, FRAGMENTS, FRAGMENTS.map(lambda t: t.replace(" ", "")))


@given(TEXTS)
@settings(max_examples=400)
def test_any_text_gives_a_tree_with_places_inside_it(text: str) -> None:
    end = 0
    for offset, item in parse(text).items:
        assert offset >= end and text[offset : offset + len(item.text)] == item.text
        end = offset + len(item.text)
        length = len(item.text)
        for p in item.problems:
            assert 0 <= p.start < p.end <= length
            assert all(0 <= a <= b <= length for a, b, _ in p.related)
            assert p.message.isprintable()
        if item.node is not None:
            _inside(item.node, 0, length)


def _inside(node: Any, lo: int, hi: int) -> None:
    waiting = [(node, lo, hi)]
    while waiting:
        node, lo, hi = waiting.pop()
        if isinstance(node, tree.Node):
            assert lo <= node.start <= node.end <= hi, node
            names = type(node).__dataclass_fields__
            waiting += [(getattr(node, n), node.start, node.end) for n in names if n not in ("start", "end")]
        elif isinstance(node, tuple):
            waiting += [(n, lo, hi) for n in node]


@given(TEXTS)
@settings(max_examples=200)
def test_no_significant_character_is_outside_the_items(text: str) -> None:
    rest = list(text.removeprefix("\ufeff"))
    shift = len(text) - len(rest)
    for offset, item in parse(text).items:
        for i in range(offset, offset + len(item.text)):
            rest[i - shift] = " "
    assert not "".join(rest).strip()


@given(files)
@settings(max_examples=60)
def test_parse_print_parse(nodes: list[Any]) -> None:
    text = "\n".join(show(n) for n in nodes)
    assert problems(text) == []
    assert nodes_of(text) == [sketch(n) for n in nodes]


EDITS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 12), FRAGMENTS), max_size=6)


@given(st.one_of(TEXTS, files.map(lambda ns: "\n".join(show(n) for n in ns))), EDITS)
@settings(max_examples=120)
def test_edits_in_any_order_are_the_text_parsed_at_once(text: str, edits: list[tuple[int, int, str]]) -> None:
    forget()
    for place, length, new in edits:
        parse(text)
        at = place % (len(text) + 1)
        text = text[:at] + new + text[at + length :]
    after_edits = whole(text)
    forget()
    assert after_edits == whole(text)


def _words(text: str) -> list[str]:
    tokens = tokenize(text.removeprefix("\ufeff"))
    return [t[2] for t, k in zip(tokens.list, tokens.kinds) if k != END]


def _comments(text: str) -> list[str]:
    return [c.text.rstrip() for c in tokenize(text.removeprefix("\ufeff")).comments]


@st.composite
def loose_texts(draw: Any) -> str:
    """Text that parses, with blanks, line breaks and comments wherever they may stand."""
    text = "\n".join(show(n) for n in draw(files))
    tokens = tokenize(text)
    gaps = st.sampled_from(["", " ", "  ", "\t"])
    breaks = st.sampled_from(["", "", "", "", "\n", " // c\n", "\n\n\n", "\n  // own\n", " // x\n// y\n\n"])
    out: list[str] = []
    previous = ""
    for index, (kind, (_start, _end, word)) in enumerate(zip(tokens.kinds, tokens.list)):
        if kind == END:
            out.append(draw(st.sampled_from(["\n", ";", " ;\n", "\n\n\n", " // c\n", "\n// own\n", "\r\n"])))
            continue
        if index and tokens.kinds[index - 1] != END:
            needs = previous.isalnum() and (word[0].isalnum() or word[0] == "_")
            broken = draw(breaks) if tokens.kinds[index - 1] not in "nidb)]}BCT" else ""
            # an operator glued to the next would be another operator
            out.append(broken or draw(gaps) or (" " if needs or not (previous in "([," or word in ")],") else ""))
        out.append(word)
        previous = word[-1].replace("_", "a")
    return "".join(out)


@given(loose_texts(), st.sampled_from([20, 40, 120]))
@settings(max_examples=50)
def test_formatting_keeps_meaning_and_comments_and_is_done_once(text: str, length: int) -> None:
    assert problems(text) == []
    formatted = format_text(text, length)
    assert _words(formatted) == _words(text)
    assert _comments(formatted) == _comments(text)
    assert nodes_of(formatted) == nodes_of(text)
    assert format_text(formatted, length) == formatted
    assert not any(line.endswith((" ", "\t")) for line in formatted.splitlines())


@given(loose_texts(), st.integers(0, 10**6), st.integers(0, 60))
@settings(max_examples=40)
def test_formatting_a_range_keeps_meaning_and_the_lines_outside(text: str, place: int, length: int) -> None:
    start = place % (len(text) + 1)
    end = min(len(text), start + length)
    edits = format_range(text, start, end)
    result = text
    for edit in reversed(edits):
        assert edit.start <= edit.end <= len(text)
        result = result[: edit.start] + edit.content + result[edit.end :]
    assert nodes_of(result) == nodes_of(text)
    assert _comments(result) == _comments(text)
    # What lies more than a gap away from the lines asked for is untouched.
    first = edits[0].start if edits else len(text)
    assert result[:first] == text[:first]
    assert format_text(result) == format_text(text)


@given(TEXTS)
@settings(max_examples=200)
def test_formatting_any_text_formats_it_or_names_its_first_mistake(text: str) -> None:
    found = problems(text)
    try:
        format_text(text)
    except FormatError as error:
        assert found and error.problem.code == found[0][0]
    else:
        assert not found

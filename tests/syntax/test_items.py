"""Files cut into items, and items kept: what an edit parses anew."""

from __future__ import annotations

import random

import pytest

from phobos.syntax import items, parse, parsed_items, pieces, tree
from tests.syntax.trees import forget

KERNEL = "@persistent\nkernel k{0}(X: tensor<f32>[N]) {{\n  let p = ctx.block.x\n  X[p * 64 :+ 64] = {0}.0\n}}\n"
FILE = "// head\n" + "\n".join(KERNEL.format(i) for i in range(20)) + "\nfn f(x: f32) -> f32 {\n  return x\n}\n"


def texts(text: str) -> list[str]:
    return [item.text for _, item in parse(text).items]


def test_items_are_kernels_functions_and_what_stands_between() -> None:
    text = "// a\n\n@x\nkernel k() { }  // b\n// c\nfn f() { }\nlost\n"
    assert texts(text) == ["// a", "@x\nkernel k() { }", "// b\n// c", "fn f() { }", "lost"]
    kinds = [type(i.node) for _, i in parse(text).items]
    assert kinds == [type(None), tree.Kernel, type(None), tree.Function, type(None)]


def test_items_of_one_text_are_one_object() -> None:
    first, second = parse("kernel k() { }\n\n// c\nkernel k() { }").items[0::2]
    assert first[1] is second[1] and first[0] != second[0]
    assert parse("\n\nkernel k() { }").items[0][1] is first[1]


def test_a_line_inserted_above_everything_parses_no_item() -> None:
    before = parse(FILE)
    count = parsed_items()
    for line in ("\n", "// a comment of its own\n\n"):
        after = parse(line + FILE)
        kernels = [i for _, i in after.items if i.node is not None]
        assert kernels == [i for _, i in before.items if i.node is not None]
    assert parsed_items() - count <= 1  # the comments above the first kernel are a stretch of their own


def test_an_edit_in_one_kernel_parses_that_item_and_one_piece() -> None:
    parse(FILE)
    items, shapes = parsed_items(), pieces.new_shapes()
    parse(FILE.replace("= 7.0", "= 7.0 * X[p, 3] - q"))
    assert parsed_items() - items == 1
    assert pieces.new_shapes() - shapes == 1


def test_statements_of_one_shape_are_learnt_once_and_are_nodes_of_their_own() -> None:
    forget()
    shapes = pieces.new_shapes()
    ((_, item),) = parse("kernel k() {\n  f(a)\n  g(b)\n  f(a)\n}").items
    assert pieces.new_shapes() - shapes == 2  # the header and the statement
    assert isinstance(item.node, tree.Kernel)
    assert len(set(item.node.body.statements)) == 3


def test_a_text_is_cut_alike_whatever_was_cut_before() -> None:
    """Only what an edit changed is looked at; the cuts are those of the whole text."""
    chance = random.Random(11)
    typed = ("{", "}", "@", "kernel ", "fn ", "//", "\n", "\r\n", " ", "kern", "el ", "@x\n", "_", "\ufeff")
    typed = (*typed, KERNEL.format(5))
    before = nothing = items._Cutting("", [], [])
    text = ""
    for step in range(1200):
        if step % 40 == 0:
            text = FILE[chance.randrange(200) :]
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(typed) * chance.randrange(3) + text[at + chance.choice((0, 0, 1, 2, 90)) :]
        after, whole = items._cut(text, before), items._cut(text, nothing)
        assert list(map(repr, after.cuts)) == list(map(repr, whole.cuts)), (before.text, text)
        assert after.rests == whole.rests
        before = after


def test_words_in_comments_begin_no_item() -> None:
    assert texts("kernel k() {\n  // kernel of it { @\n}\n// fn\nkernel l() { }") == [
        "kernel k() {\n  // kernel of it { @\n}",
        "// fn",
        "kernel l() { }",
    ]


def test_longer_words_begin_no_item() -> None:
    for word in ("kernels", "_kernel", "fn1", "éfn", "5kernel"):
        assert len(texts(f"kernel k() {{\n{word} = 1\n}}")) == 1, word


def test_an_unclosed_kernel_ends_where_the_next_begins() -> None:
    text = "kernel a() {\n  if x {\n\n// about b\n@persistent\nkernel b() { }"
    assert texts(text) == ["kernel a() {\n  if x {", "// about b", "@persistent\nkernel b() { }"]


def test_attributes_in_a_body_belong_to_the_kernel_that_follows() -> None:
    text = "kernel a() {\n  let x = 1\n@persistent // c\n@launch(256)\nkernel b() { }"
    assert texts(text)[-1] == "@persistent // c\n@launch(256)\nkernel b() { }"


def test_the_cache_is_bounded() -> None:
    import phobos.syntax

    forget()
    phobos.syntax._kept = 0
    room = phobos.syntax._room
    try:
        phobos.syntax._room = 1000
        for i in range(200):
            parse(KERNEL.format(i))
            assert sum(map(len, phobos.syntax._items)) <= 1000
    finally:
        phobos.syntax._room = room


def test_the_memory_of_shapes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    monkeypatch.setattr(pieces, "_KEPT_SHAPES", 10)
    monkeypatch.setattr(pieces, "_KEPT_LENGTH", 30)
    for n in range(1, 40):
        assert len(parse("kernel k() {\n  x = " + " + ".join("a" * n) + "\n}").items) == 1
        assert len(pieces._shapes) <= 10
        assert all(len(kinds) <= 30 for _, kinds in pieces._shapes)

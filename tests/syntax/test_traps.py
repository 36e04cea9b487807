"""Where newlines, brackets and glued characters mean something that surprises: one test a trap."""

from __future__ import annotations

from itertools import pairwise

import pytest

from phobos.syntax import parse, tree
from tests.syntax.trees import body, nodes_of, problems, show, statements

# Lines that are fine, and the statements they make.
LEGAL = {
    "a line break after an operator": ("let y = a +\n  b", ["let y = a + b"]),
    "a line break after a comma": ("f(a,\n  b)", ["f(a, b)"]),
    "a line break after an opening bracket": ("let y = f(\n  a)", ["let y = f(a)"]),
    "a line break after the bracket of a subscript": ("X[\n  a] = 1", ["X[a] = 1"]),
    "a line break after `=`": ("let y =\n  a", ["let y = a"]),
    "a line break after a dot": ("let y = ctx.\n  block.x", ["let y = ctx.block.x"]),
    "a comment does not keep a line from ending": ("let y = a // c\n- b", ["let y = a", "-b"]),
    "minus on the next line is a statement of its own": ("let y = a\n- b", ["let y = a", "-b"]),
    "a bracket on the next line is a statement of its own": ("f\n(x)", ["f", "(x)"]),
    "return ends at the line": ("return\n3", ["return", "3"]),
    "break ends at the line": ("break\n-x", ["break", "-x"]),
    "a semicolon ends a statement": ("a = 1; b = 2;", ["a = 1", "b = 2"]),
    "empty statements": (";;a = 1;;;\n;", ["a = 1"]),
    "no terminator before `}`": ("if p { a = 1 }", ["if p {\na = 1\n}"]),
    "no terminator after `}`": ("if p { } a = 1", ["if p {\n}", "a = 1"]),
    "`else` may end its line": ("if p { } else\n{ }", ["if p {\n} else {\n}"]),
    "`else if` may be broken": ("if p { } else\nif q { }", ["if p {\n} else if q {\n}"]),
    "chains of prefix operators": ("a = --x + !!b - -!x", ["a = --x + !!b - -!x"]),
    "minus binds looser than a subscript": ("a = -A[0]", ["a = -A[0]"]),
    "equality chains": ("a = x == y == z", ["a = x == y == z"]),
    "`:+` without blanks": ("a = A[i:+n]", ["a = A[i :+ n]"]),
    "`:` and a prefix minus": ("a = A[i:-n]", ["a = A[i:-n]"]),
    "open ends": ("a = A[:e, s:, :]", ["a = A[:e, s:, :]"]),
    "words that mean something elsewhere": (
        "let range = tile\nvar tensor = exp\nunroll = f32",
        ["let range = tile", "var tensor = exp", "unroll = f32"],
    ),
    "a keyword in a longer word": ("let lets = iff + for_ + kernels", ["let lets = iff + for_ + kernels"]),
    "an unrolled loop": ("for<unroll 4> i in range(0, 8) { }", ["for<unroll 4> i in range(0, 8) {\n}"]),
    "an unrolled loop with blanks": (
        "for <unroll 4> i in range(0, 8, 2) { }",
        ["for<unroll 4> i in range(0, 8, 2) {\n}"],
    ),
    "a tile without a value": ("var t: tile<f32>[R, 4]", ["var t: tile<f32>[R, 4]"]),
    "a comparison of types' names": ("let t = tile < f32", ["let t = tile < f32"]),
    "a range to a tile": ("let t = A[i:tile < 3]", ["let t = A[i:tile < 3]"]),
    "integers of level 0.2": ("a = 0x1F + 1_000 + 007", ["a = 31 + 1000 + 7"]),
    "floats": ("a = 7. + 1e-5 + 2.5E+3 + 1_0.5 + 3e4", ["a = 7. + 1e-5 + 2.5E+3 + 1_0.5 + 3e4"]),
    "the largest integer": ("a = 9223372036854775807", ["a = 9223372036854775807"]),
    "a call without arguments": ("f()", ["f()"]),
    "bits bind looser than equality": ("a = x & y == z", ["a = x & y == z"]),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    lines, expected = LEGAL[name]
    assert problems(body(lines)) == []
    assert [show(s) for s in statements(lines)] == expected


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_ends_a_statement(end: str) -> None:
    text = body("let y = a // c\n- b").replace("\n", end)
    assert problems(text) == []
    assert nodes_of(text) == nodes_of(body("let y = a\n- b"))


@pytest.mark.parametrize("last", ["x", "1", "1.0", "true", "false", "f(x)", "X[0]", "(x)"])
def test_a_line_that_ends_in_an_operand_is_a_statement(last: str) -> None:
    assert problems(body(f"a = {last}\n-b")) == []
    assert [show(s) for s in statements(f"a = {last}\n-b")] == [f"a = {last}", "-b"]


def test_precedence_from_loosest_to_tightest() -> None:
    operators = ["||", "&&", "|", "^", "&", "==", "<", "<<", "+", "*"]
    for loose, tight in pairwise(operators):
        for lines in (f"a {loose} b {tight} c", f"c {tight} b {loose} a"):
            (statement,) = statements(lines)
            assert isinstance(statement, tree.ExprStmt) and isinstance(statement.value, tree.Binary)
            assert statement.value.op == loose, lines


def test_operators_of_one_level_group_to_the_left() -> None:
    for op in ("||", "&&", "|", "^", "&", "==", "<<", "+", "-", "*", "/", "%"):
        (statement,) = statements(f"a {op} b {op} c")
        assert isinstance(statement, tree.ExprStmt) and isinstance(statement.value, tree.Binary)
        assert isinstance(statement.value.left, tree.Binary) and isinstance(statement.value.right, tree.Name)


def test_attributes_on_lines_of_their_own_or_together() -> None:
    apart = "@persistent\n;\n@launch(256, 2)\n\nkernel k() { }"
    together = "@persistent @launch(256, 2) kernel k() { }"
    assert problems(apart) == problems(together) == []
    assert nodes_of(apart) == nodes_of(together)


def test_an_attribute_knows_its_brackets() -> None:
    ((_, item),) = parse("@persistent @persistent() kernel k() { }").items
    assert isinstance(item.node, tree.Kernel)
    assert [a.parenthesised for a in item.node.attributes] == [False, True]


def test_attribute_arguments() -> None:
    attributes = "@autotune(T in [16, 0x20], U in [])\n@aligned(N = T, M = 4)\n@tensorcore(wmma)\n@x(1.5, true)\n"
    text = attributes + "kernel k() { }"
    assert problems(text) == []
    ((_, item),) = parse(text).items
    assert isinstance(item.node, tree.Kernel)
    assert [show(a) for a in item.node.attributes] == [
        "@autotune(T in [16, 32], U in [])",
        "@aligned(N = T, M = 4)",
        "@tensorcore(wmma)",
        "@x(1.5, true)",
    ]


def test_items_on_one_line() -> None:
    text = "fn f(x: f32) -> f32 { return x } kernel a() { } ; kernel b() { }"
    assert problems(text) == []
    assert [show(i.node).split("(")[0] for _, i in parse(text).items if i.node] == ["fn f", "kernel a", "kernel b"]


def test_an_empty_file_and_one_of_comments_are_fine() -> None:
    for text in ("", "\n\n", "// nothing\n", "\ufeff", ";\n;"):
        assert problems(text) == [] and nodes_of(text) == []


def test_a_byte_order_mark_at_the_start_is_skipped() -> None:
    text = "\ufeffkernel k() { }"
    assert problems(text) == [] and len(nodes_of(text)) == 1
    ((offset, item),) = parse(text).items
    assert offset == 1 and item.text[0] == "k"


def test_offsets_are_code_points_of_the_item() -> None:
    text = "// é𝄞\nkernel k() {\n  let naïve𝄞x = 1 // 𝄞\n}"
    ((_, comment), (offset, item)) = parse(text).items
    assert comment.node is None and text[offset:].startswith("kernel")
    assert [p.code for p in item.problems] == ["PH001"]  # a clef is no letter
    (p,) = item.problems
    assert item.text[p.start : p.end] == "𝄞"


def test_names_take_letters_of_any_script_and_their_marks() -> None:
    for name in ("é", "e\u0301t", "имя", "變數", "שם", "की", "a\u0301\u0302b"):
        (statement,) = statements(f"let {name} = 1")
        assert problems(body(f"let {name} = 1")) == []
        assert isinstance(statement, tree.Let) and statement.name.text == name


def test_comments_are_kept_with_their_item() -> None:
    text = "// a\nkernel k() { // b\n  // c\n}\n// d\n"
    found = [(o + c.start, c.text) for o, i in parse(text).items for c in i.comments]
    assert found == [(text.index(t), t) for t in ("// a", "// b", "// c", "// d")]

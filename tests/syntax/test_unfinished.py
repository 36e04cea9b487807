"""While one types: what stands before the cursor is in the tree, with names, types and places."""

from __future__ import annotations

from typing import Any

import pytest

from phobos.syntax import parse, tree
from tests.syntax.trees import body, sketch, statements

# What is typed, and the statement it becomes. `_` is a missing expression.
TYPED = {
    "X[p * ": "X[p * _]",
    "X[p * 64 :+ ": "X[p * 64 :+ _]",
    "X[p, ": "X[p, _]",
    "X[": "X[_]",
    "ctx.": "ctx.",
    "let p = ctx.block.": "let p = ctx.block.",
    "exp(": "exp(_)",
    "dot(a, ": "dot(a, _)",
    "dot(a, X[0 :+ ": "dot(a, X[0 :+ _])",
    "grid_": "grid_",
    "let y = ": "let y = _",
    "let y": "let y = _",
    "let y: f32": "let y: f32 = _",
    "var t: tile<f32>[R, ": "var t: tile<f32>[R, ]",
    "y += ": "y += _",
    "X[i] = X[i] + ": "X[i] = X[i] + _",
    "return ": "return",
    "if p < ": "if p < _ {\n}",
    "if p < {\n  y = 1\n}": "if p < _ {\ny = 1\n}",
    "if p && (q <": "if p && (q < _) {\n}",
    "while ": "while _ {\n}",
    "for t in range(p, ": "for t in range(p, _) {\n}",
    "for t in range(p * T, N, ctx.": "for t in range(p * T, N, ctx.) {\n}",
    "for t in range(p, N) {\n  X[t": "for t in range(p, N) {\nX[t]\n}",
    "for t in": "for t in range(_, _) {\n}",
    "if p { y = 1 } else {\n  z = ": "if p {\ny = 1\n} else {\nz = _\n}",
    "if p { y = 1 } else if ": "if p {\ny = 1\n} else if _ {\n}",
    "foo(a b)": "foo(a, b)",
    "foo(a]": "foo(a)",
    "a + * b": "a + _ * b",
    "- ": "-_",
    "!(a == ": "!(a == _)",
}


def show(node: Any) -> str:
    """As `trees.show`, with `_` for what is missing."""
    from tests.syntax import trees

    class Underscore(tree.Name):
        pass

    def patched(n: Any) -> Any:
        if isinstance(n, tree.Missing):
            return tree.Name(n.start, n.end, "_")
        if isinstance(n, tuple):
            return tuple(patched(m) for m in n)
        if isinstance(n, tree.Node):
            return type(n)(**{f: patched(getattr(n, f)) for f in type(n).__dataclass_fields__})
        return n

    return trees.show(patched(node))


@pytest.mark.parametrize("typed", TYPED)
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "at end of file"])
def test_half_a_statement_is_a_statement(typed: str, closed: bool) -> None:
    text = body("let before = 1\n" + typed)
    if not closed:
        text = text[: text.rindex("}")].rstrip("\n")
    ((_, item),) = parse(text).items
    assert isinstance(item.node, tree.Kernel)
    assert [show(s) for s in item.node.body.statements] == ["let before = 1", TYPED[typed]]
    assert item.node.params and item.node.name.text == "k"


@pytest.mark.parametrize("typed", [t for t in TYPED if t.count("{") == t.count("}")])
def test_half_a_statement_leaves_the_next_line_alone(typed: str) -> None:
    *_, last = statements(typed + "\nX[q] = 2")
    assert sketch(last) == sketch(statements("X[q] = 2")[0])


@pytest.mark.parametrize("typed", ["X[p * ", "ctx.", "exp(", "let y = ", "y = a +", "X[p, "])
@pytest.mark.parametrize("following", ["let z = 1", "Y[0] = 1", "if p { }", "return", "}"])
def test_an_operator_at_the_end_does_not_take_the_next_statement(typed: str, following: str) -> None:
    made = statements(typed + "\n" + following)
    assert show(made[0]) == TYPED.get(typed, "y = a + _")
    if following != "}":
        assert len(made) == 2


def test_what_no_statement_takes_is_kept_as_parts() -> None:
    first, rest, last = statements("let x = a b + f(c)\ny = 1")
    assert show(first) == "let x = a" and show(last) == "y = 1"
    assert isinstance(rest, tree.Broken)
    assert [show(p) for p in rest.parts] == ["b + f(c)"]


def test_what_a_header_does_not_take_is_kept_too() -> None:
    rest, statement = statements("if a and b < c {\n  y = 1\n}")
    assert isinstance(rest, tree.Broken) and [show(p) for p in rest.parts] == ["and", "b < c"]
    assert show(statement) == "if a {\ny = 1\n}"


def test_what_the_header_of_a_kernel_does_not_take_is_no_statement() -> None:
    ((_, item),) = parse("@launch 256\nkernel k(a: f32) -> f32 {\n  let x = a\n  * b\n}").items
    assert isinstance(item.node, tree.Kernel)
    assert [show(s) for s in item.node.body.statements] == ["let x = a * b"]


def test_parts_of_an_assignment_to_nothing_assignable() -> None:
    (broken,) = statements("f(a) = X[b]")
    assert isinstance(broken, tree.Broken)
    assert [show(p) for p in broken.parts] == ["f(a)", "X[b]"]


@pytest.mark.parametrize(
    ("typed", "name", "params"),
    [
        ("kernel", "", 0),
        ("kernel a", "a", 0),
        ("kernel a(", "a", 0),
        ("kernel a(X: tensor<f32>[N], ", "a", 2),
        ("kernel a(X: tensor<f32>[N], Y: ", "a", 2),
        ("kernel a(X: tensor<f32>[N], Y: tensor<", "a", 2),
        ("@persistent\n@aligned(N = \nkernel a() {", "a", 0),
    ],
)
def test_half_a_header_is_a_kernel(typed: str, name: str, params: int) -> None:
    ((_, item),) = parse(typed).items
    assert isinstance(item.node, tree.Kernel)
    assert item.node.name.text == name and len(item.node.params) == params


def test_half_an_attribute_is_an_attribute() -> None:
    ((_, item),) = parse("@persistent\n@autotune(T in [16, \nkernel a() {\n}").items
    assert isinstance(item.node, tree.Kernel)
    assert [a.name.text for a in item.node.attributes] == ["persistent", "autotune"]
    (argument,) = item.node.attributes[1].arguments
    assert isinstance(argument, tree.SearchArg) and [v.value for v in argument.values] == [16]


def test_missing_stands_behind_what_is_there() -> None:
    text = body("X[p * ")
    (statement,) = statements("X[p * ")
    assert isinstance(statement, tree.ExprStmt) and isinstance(statement.value, tree.Subscript)
    point = statement.value.subscripts[0]
    assert isinstance(point, tree.Point) and isinstance(point.value, tree.Binary)
    missing = point.value.right
    assert isinstance(missing, tree.Missing)
    assert missing.start == missing.end == text.index("*") + 1


def test_the_kernel_reaches_the_cursor_at_the_end_of_an_open_file() -> None:
    text = "kernel a() {\n  let x = 1\n  "
    ((offset, item),) = parse(text).items
    assert offset + len(item.text) == len(text)
    assert isinstance(item.node, tree.Kernel) and item.node.body.end == len(text)

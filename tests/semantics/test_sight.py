"""Names in sight of a cursor, from as much of the item as bears on them: what they are is what the whole item says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from phobos.ide.completion import completions
from phobos.ide.describe import meaning, type_of
from phobos.ide.document import Document
from phobos.ide.names import names_of
from phobos.semantics import module as modules
from phobos.semantics.build import build
from phobos.semantics.module import analyse, analysed_items, read
from phobos.semantics.program import Program
from phobos.semantics.sight import in_sight
from phobos.syntax import parse, tree
from phobos.syntax.lines import LineIndex
from tests.ide.fixture import cases

CORPUS = sorted((Path(__file__).parents[1] / "corpus").glob("*.ph"))
HALF_TYPED = ("let q = X[", "if p {", "}", "n = ", "return", "for i in range(0, ")


def items_of(text: str) -> tuple[list[tree.Item], dict[str, tree.Item]]:
    items = [item for _, item in parse(text).items if item.node is not None]
    return items, {item.node.name.text: item for item in items if isinstance(item.node, tree.Function)}


def types_at(program: Program, item: tree.Item, offset: int) -> dict[str, str | None]:
    found = {}
    for name, symbol in names_of(item).visible(offset).items():
        meant = meaning(program, symbol)
        found[name] = None if meant is None else type_of(meant)
    return found


def same_at(item: tree.Item, functions: dict[str, tree.Item], whole: Program, offset: int) -> None:
    seen = build(in_sight(item, offset), functions)
    assert types_at(seen, item, offset) == types_at(whole, item, offset), item.text[:offset]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_names_are_what_the_whole_item_says(path: Path) -> None:
    """At places that differ from kernel to kernel, in the text as it is and with something half typed in it."""
    chance = random.Random(path.stem)
    text = path.read_text(encoding="utf-8")
    at = chance.randrange(len(text))
    for one in (text, text[:at] + chance.choice(HALF_TYPED) + text[at:]):
        items, functions = items_of(one)
        for item in items:
            whole = build(item, functions)
            for _ in range(3):
                same_at(item, functions, whole, chance.randrange(len(item.text) + 1))


def everywhere(body: str) -> Iterator[tuple[int, dict[str, str | None]]]:
    """The types at every offset of a kernel, found of what is in sight, after a comparison with the whole."""
    text = f"kernel k(X: tensor<f32>[N], n: i32) {{\n{body}}}\n"
    (item,), functions = items_of(text)
    whole = build(item, functions)
    for offset in range(len(text)):
        same_at(item, functions, whole, offset)
        yield offset, types_at(build(in_sight(item, offset), functions), item, offset)


def test_an_assignment_behind_the_cursor_counts_in_a_loop_and_nowhere_else() -> None:
    """The length of `x` is a number only where nothing changes `w` before it."""
    loop = "  var w = 16\n  for i in range(0, 4) {\n    let x = X[0 :+ w]\n    {\n      w = w * 2\n    }\n  }\n"
    straight = "  var w = 16\n  let x = X[0 :+ w]\n  w = 32\n  let y = X[0 :+ w]\n"
    in_loop = {types["x"] for _, types in everywhere(loop) if "x" in types}
    assert "tile<f32>[16]" not in in_loop
    found = [types for _, types in everywhere(straight)]
    assert {types["x"] for types in found if "x" in types} == {"tile<f32>[16]"}
    assert {types["y"] for types in found if "y" in types} == {"tile<f32>[32]"}


def test_branches_and_ways_out_count() -> None:
    for body in (
        "  var w = 16\n  if n > 0 {\n    w = 8\n  } else if n < 0 {\n    let z = w\n  } else {\n    w = 8\n  }\n"
        "  let x = X[0 :+ w]\n  let y = w\n",
        "  var w = 16\n  while w > 2 {\n    if w == 4 {\n      break\n    }\n    w = w / 2\n    let v = X[0 :+ 4]\n"
        "  }\n  let x = X[0 :+ w]\n",
        "  let a = X[0]\n  return\n  let b = a * 2.0\n  X[0 :+ 8] = b\n  let c = X[0 :+ 8]\n",
    ):
        assert all(types["n"] == "i32" for _, types in everywhere(body) if "n" in types)


def test_a_long_chain_of_branches_is_no_depth() -> None:
    arms = "".join(f" else if n == {number} {{\n    X[0] = {number}.0\n  }}" for number in range(3000))
    text = f"kernel k(X: tensor<f32>[N], n: i32) {{\n  let a = 1.0\n  if n < 0 {{\n    X[0] = a\n  }}{arms}\n}}\n"
    (item,), _ = items_of(text)
    seen = in_sight(item, text.index("2999.0"))
    assert seen.node is not None
    assert isinstance(seen.node.body.statements[1], tree.If)


def test_a_completion_right_behind_a_key_analyses_nothing_and_says_the_same() -> None:
    """The caret cases, with no program known and with all known."""
    asked = [case for case in cases() if case.feature == "completion" and "$0" in case.source]
    assert len(asked) > 20
    for case in asked:
        text, offset = case.text, case.source.index("$0")
        warm = Document("c.ph", text, analyse("c.ph", text), LineIndex(text))
        expected = [repr(one) for one in completions(warm, offset)]
        modules._programs.clear()
        cold = Document("c.ph", text, read("c.ph", text), LineIndex(text))
        count = analysed_items()
        assert [repr(one) for one in completions(cold, offset)] == expected, case.name
        assert analysed_items() == count

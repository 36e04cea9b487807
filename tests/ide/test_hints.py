"""Hints beside names: which stand in a range, and what accepting one writes."""

from __future__ import annotations

from phobos.ide.document import Document, Range
from phobos.ide.hints import hints
from phobos.semantics.module import analyse
from phobos.syntax.lines import LineIndex

TEXT = """kernel k(X: tensor<f32>[N], n: i32) {
  let a = ctx.block.x
  let b = i32(2.5)
  let c = 1.5
  var d = X[0 :+ 4]
  X[a] = c + f32(b) + f32(n)
  X[0 :+ 4] = d
}
"""


def shown(start: int = 0, end: int = len(TEXT)) -> dict[str, str | None]:
    """What accepting each hint of a type writes, by the name it stands behind."""
    found = hints(Document("k.ph", TEXT, analyse("k.ph", TEXT), LineIndex(TEXT), ()), Range(start, end), True, False)
    return {TEXT[hint.offset - 1]: hint.insert for hint in found}


def test_accepting_a_type_writes_it_where_it_means_the_same() -> None:
    """An integer annotation wraps and keeps the kind of its value, so none says what kind of integer this is."""
    assert shown() == {"a": None, "b": None, "c": ": f32", "d": ": tile<f32>[4]"}


def test_hints_outside_the_range_are_not_given() -> None:
    assert list(shown(TEXT.index("let b"), TEXT.index("var d"))) == ["b", "c"]
    assert shown(0, 10) == {}

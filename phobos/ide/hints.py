"""Inlay hints: the types and shapes that were not written, and a mark at names whose value differs between blocks."""

from __future__ import annotations

from typing import Literal

from phobos.ide.describe import level_of, meaning, type_of
from phobos.ide.document import Document, Place, Range
from phobos.ide.keeping import kept
from phobos.language.scalars import SCALARS
from phobos.semantics import ir
from phobos.semantics.levels import Level
from phobos.semantics.program import Program
from phobos.syntax import tree
from phobos.value import value

VARYING_MARK = "≠"
VARYING_TOOLTIP = "differs between blocks"
MOST_LETTERS = 48


@value
class Hint:
    """`text` is shown at `offset`; `insert` is what accepting it writes there, None where that would not be Phobos."""

    offset: int
    text: str
    kind: Literal["type", "varying"]
    tooltip: str
    insert: str | None


def hints(document: Document, within: Range, types: bool, varying: bool) -> list[Hint]:
    """Those in a range of the document; `types` and `varying` switch each kind."""
    found: list[Hint] = []
    for place in document.places():
        if place.start > within.end or place.start + len(place.item.text) < within.start:
            continue
        program = document.program(place)
        if program is None:
            continue
        for hint in _hints(place.item, program):
            offset = place.start + hint.offset
            if within.start <= offset <= within.end and (types if hint.kind == "type" else varying):
                found.append(Hint(offset, hint.text, hint.kind, hint.tooltip, hint.insert))
    return found


@kept
def _hints(item: tree.Item, program: Program) -> tuple[Hint, ...]:
    place = Place(0, item, 0)
    found: list[Hint] = []
    for symbol in place.names.symbols:
        if symbol.kind not in ("let", "var", "loop"):
            continue
        meant = meaning(program, symbol)
        if not isinstance(meant, ir.Variable):
            continue
        end = symbol.declared.end
        if level_of(program, meant) >= Level.VARYING:
            found.append(Hint(end, VARYING_MARK, "varying", VARYING_TOOLTIP, None))
        written = symbol.node.type if isinstance(symbol.node, tree.Let | tree.Var) else None
        text = type_of(meant)
        if symbol.kind != "loop" and written is None and text:
            shown = text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"
            tooltip = "a view: its elements are read where it is used" if meant.kind == "view" else ""
            found.append(Hint(end, f": {shown}", "type", tooltip, _writable(meant)))
    return tuple(found)


def _writable(variable: ir.Variable) -> str | None:
    """The annotation that means the same, where there is one: an index has no name, a view must stay one."""
    match variable.type:
        case ir.ScalarT(dtype=dtype) if dtype in SCALARS and SCALARS[dtype].kind != "integer":
            return f": {dtype}"
        case ir.TileT(dtype=dtype, shape=shape) if dtype in SCALARS and variable.kind == "var":
            if all(isinstance(n, int) for n in shape):
                return f": tile<{dtype}>[{', '.join(map(str, shape))}]"
        case _:
            pass
    return None

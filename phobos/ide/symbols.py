"""The outline of a document and its names as a whole workspace lists them."""

from __future__ import annotations

from phobos.ide.document import Document, Place, Range
from phobos.ide.names import Kind
from phobos.syntax import tree
from phobos.value import value


@value
class Outline:
    """A named part: `range` is all of it, `name_range` its name."""

    name: str
    kind: Kind
    detail: str
    range: Range
    name_range: Range
    children: tuple[Outline, ...]


def outline(document: Document) -> list[Outline]:
    return [part for place in document.places() if (part := _item(place)) is not None]


def matches(query: str, name: str) -> bool:
    """Whether the letters of `query` stand in `name` in that order, letter case aside."""
    letters = iter(name.casefold())
    return all(letter in letters for letter in query.casefold())


def _item(place: Place) -> Outline | None:
    node = place.item.node
    if node is None or not node.name.text:
        return None
    parts: list[Outline] = []
    for symbol in place.names.symbols:
        if symbol.kind in ("kernel", "function", "loop"):
            continue
        whole = symbol.node if symbol.kind != "dimension" else symbol.declared
        parts.append(
            Outline(
                symbol.name, symbol.kind, _detail(place, symbol.node), place.range(whole.start, whole.end),
                place.range(symbol.declared.start, symbol.declared.end), (),
            )
        )
    parts.sort(key=lambda part: part.name_range.start)
    kind: Kind = "kernel" if isinstance(node, tree.Kernel) else "function"
    detail = ""
    if isinstance(node, tree.Kernel):
        detail = " ".join("@" + attribute.name.text for attribute in node.attributes if attribute.name.text)
    return Outline(
        node.name.text, kind, detail, place.range(node.start, node.end),
        place.range(node.name.start, node.name.end), tuple(parts),
    )


def _detail(place: Place, node: tree.Node) -> str:
    written: tree.Node | None = None
    match node:
        case tree.Param(type=written) | tree.Let(type=written) | tree.Var(type=written):
            pass
        case tree.SearchArg(values=values):
            return "in [" + ", ".join(str(v.value) for v in values) + "]"
        case _:
            pass
    return place.item.text[written.start : written.end] if written is not None else ""

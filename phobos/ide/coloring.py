"""Semantic tokens: what each name is, so that an editor can colour a tensor, a tile, a constant and a dimension apart.

A value that differs between blocks carries a modifier, since that is what matters at a barrier. Names only:
keywords, numbers and comments are the grammar's.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.ide.describe import level_at, meaning
from phobos.ide.document import Document, Place, Range
from phobos.ide.keeping import kept
from phobos.ide.names import Use
from phobos.ide.walk import every
from phobos.language.attributes import ATTRIBUTES
from phobos.language.builtins import BUILTINS
from phobos.semantics import ir
from phobos.semantics.levels import Level
from phobos.semantics.program import Program
from phobos.syntax import tree
from phobos.value import value

TYPES = (
    "function", "parameter", "variable", "tensor", "tile", "constant", "dimension", "decorator", "property", "type",
)  # fmt: skip
MODIFIERS = ("declaration", "readonly", "modification", "defaultLibrary", "blockVarying")


@value
class Token:
    """`type` is one of TYPES, `modifiers` of MODIFIERS."""

    start: int
    length: int
    type: str
    modifiers: tuple[str, ...]


def tokens(document: Document, within: Range | None = None) -> list[Token]:
    """All tokens of the document in order, or those that touch a range of it."""
    found: list[Token] = []
    for place in document.places():
        end = place.start + len(place.item.text)
        if within is not None and (end <= within.start or place.start >= within.end):
            continue
        functions = _called_functions(document, place)
        own = _tokens(place.item, document.program(place), functions)
        found.extend(Token(place.start + t.start, t.length, t.type, t.modifiers) for t in own)
    if within is not None:
        found = [t for t in found if t.start < within.end and t.start + t.length > within.start]
    return found


def _called_functions(document: Document, place: Place) -> frozenset[str]:
    names = {use.name for use in place.names.uses if use.role == "call"}
    return frozenset(name for name in names if document.function(name) is not None)


@kept
def _tokens(item: tree.Item, program: Program | None, functions: frozenset[str]) -> tuple[Token, ...]:
    """Of one item; kept, since an item and its program are the same object until either changes."""
    place = Place(0, item, 0)
    found = [token for use in place.names.uses if (token := _name(use, program, functions)) is not None]
    assert item.node is not None
    for node in every(item.node):
        found.extend(_node(node))
    found.sort(key=lambda token: token.start)
    kept: list[Token] = []
    for token in found:
        if not kept or token.start >= kept[-1].start + kept[-1].length:
            kept.append(token)
    return tuple(kept)


def _name(use: Use, program: Program | None, functions: frozenset[str]) -> Token | None:
    modifiers: list[str] = []
    length = use.end - use.start
    symbol = use.symbol
    if symbol is None:
        if use.role == "call":
            builtin = BUILTINS.get(use.name)
            if builtin is not None and (builtin.core or use.name not in functions):
                return Token(use.start, length, "function", ("defaultLibrary",))
            return Token(use.start, length, "function", ()) if use.name in functions else None
        return Token(use.start, length, "variable", ("defaultLibrary",)) if use.name == "ctx" else None
    if use.role == "declare":
        modifiers.append("declaration")
    elif use.role in ("write", "update"):
        modifiers.append("modification")
    meant = meaning(program, symbol) if program is not None else None
    type = {
        "kernel": "function", "function": "function", "tensor": "tensor", "tile": "tile", "parameter": "parameter",
        "dimension": "dimension", "constant": "constant",
    }.get(symbol.kind, "variable")  # fmt: skip
    if isinstance(meant, ir.Variable) and isinstance(meant.type, ir.TileT):
        type = "tile"
    if symbol.kind in ("let", "loop", "constant", "dimension", "parameter"):
        modifiers.append("readonly")
    if isinstance(meant, ir.Variable) and program is not None and level_at(program, use, meant) >= Level.VARYING:
        modifiers.append("blockVarying")
    return Token(use.start, length, type, tuple(modifiers))


def _node(node: tree.Node) -> Iterator[Token]:
    match node:
        case tree.Attribute(name=name) if name.text:
            known = ("defaultLibrary",) if name.text in ATTRIBUTES else ()
            yield Token(name.start, name.end - name.start, "decorator", known)
        case tree.ScalarType():
            if node.end > node.start:
                yield Token(node.start, node.end - node.start, "type", ("defaultLibrary",))
        case tree.TensorType():
            yield Token(node.start, len("tensor"), "type", ("defaultLibrary",))
        case tree.TileType():
            yield Token(node.start, len("tile"), "type", ("defaultLibrary",))
        case tree.Member(name=name) if name.text:
            varying = ("blockVarying",) if _is_block(node) else ()
            yield Token(name.start, name.end - name.start, "property", ("readonly", *varying))
        case _:
            pass


def _is_block(node: tree.Member) -> bool:
    """`x` of `ctx.block.x`."""
    base = node.base
    return isinstance(base, tree.Member) and base.name.text in ("block", "thread", "warp", "lane")

"""`textDocument/documentSymbol`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lsprotocol import types

from phobos.ide.symbols import Outline, outline
from phobos.lsp.convert import Converter, Ready, converter
from phobos.lsp.server import Server

KINDS = {
    "kernel": types.SymbolKind.Function,
    "function": types.SymbolKind.Function,
    "tensor": types.SymbolKind.Array,
    "tile": types.SymbolKind.Array,
    "parameter": types.SymbolKind.Variable,
    "dimension": types.SymbolKind.Number,
    "constant": types.SymbolKind.Constant,
    "let": types.SymbolKind.Variable,
    "var": types.SymbolKind.Variable,
    "loop": types.SymbolKind.Variable,
}


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def answer(params: types.DocumentSymbolParams) -> Ready | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        parts = outline(session.analysed(document))
        if session.client.symbol_tree:
            return Ready([_tree(to, part) for part in parts])
        return Ready([flat for part in parts for flat in _flat(to, part, None)])


def _tree(to: Converter, part: Outline) -> dict[str, Any]:
    """A `DocumentSymbol`."""
    symbol: dict[str, Any] = {
        "name": part.name,
        "kind": KINDS[part.kind].value,
        "range": to.json(part.range),
        "selectionRange": to.json(part.name_range),
    }
    if part.detail:
        symbol["detail"] = part.detail
    if part.children:
        symbol["children"] = [_tree(to, child) for child in part.children]
    return symbol


def _flat(to: Converter, part: Outline, container: str | None) -> Iterator[dict[str, Any]]:
    """`SymbolInformation`, for clients that know no tree."""
    symbol: dict[str, Any] = {
        "name": part.name,
        "kind": KINDS[part.kind].value,
        "location": {"uri": to.document.uri, "range": to.json(part.range)},
    }
    if container is not None:
        symbol["containerName"] = container
    yield symbol
    for child in part.children:
        yield from _flat(to, child, part.name)

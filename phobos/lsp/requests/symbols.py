"""`textDocument/documentSymbol`."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from phobos.ide.symbols import Outline, outline
from phobos.lsp.convert import Converter, converter
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
    def answer(
        params: types.DocumentSymbolParams,
    ) -> list[types.DocumentSymbol] | list[types.SymbolInformation] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        parts = outline(session.analysed(document))
        if session.client.symbol_tree:
            return [_tree(to, part) for part in parts]
        return [flat for part in parts for flat in _flat(to, part, None)]


def _tree(to: Converter, part: Outline) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        name=part.name,
        detail=part.detail or None,
        kind=KINDS[part.kind],
        range=to.range_of(part.range),
        selection_range=to.range_of(part.name_range),
        children=[_tree(to, child) for child in part.children],
    )


def _flat(to: Converter, part: Outline, container: str | None) -> Iterator[types.SymbolInformation]:
    yield types.SymbolInformation(
        name=part.name, kind=KINDS[part.kind], location=to.location(part.range), container_name=container
    )
    for child in part.children:
        yield from _flat(to, child, part.name)

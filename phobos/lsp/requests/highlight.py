"""`textDocument/documentHighlight`: where a name is read and where it is written."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.references import occurrences
from phobos.lsp.convert import converter
from phobos.lsp.server import Server

KINDS = {
    "declare": types.DocumentHighlightKind.Write,
    "write": types.DocumentHighlightKind.Write,
    "update": types.DocumentHighlightKind.Write,
    "read": types.DocumentHighlightKind.Read,
    "call": types.DocumentHighlightKind.Text,
    "attribute": types.DocumentHighlightKind.Text,
}


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def answer(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        found = occurrences(session.analysed(document), to.offset(params.position))
        return [types.DocumentHighlight(to.range_of(o.range), KINDS[o.role]) for o in found]

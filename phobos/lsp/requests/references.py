"""`textDocument/references`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.references import references
from phobos.lsp.convert import converter
from phobos.lsp.server import Server


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_REFERENCES)
    def answer(params: types.ReferenceParams) -> list[types.Location] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        declaration = params.context.include_declaration
        found = references(session.analysed(document), to.offset(params.position), declaration)
        return [to.location(range) for range in found]

"""`textDocument/typeDefinition`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.references import type_definition
from phobos.lsp.convert import converter
from phobos.lsp.server import Server


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_TYPE_DEFINITION)
    def answer(params: types.TypeDefinitionParams) -> types.Location | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        found = type_definition(session.analysed(document), to.offset(params.position))
        return None if found is None else to.location(found)

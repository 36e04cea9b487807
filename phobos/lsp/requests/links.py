"""`textDocument/documentLink`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.links import links
from phobos.lsp.convert import converter
from phobos.lsp.server import Server
from phobos.lsp.uris import uri_of


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_DOCUMENT_LINK, types.DocumentLinkOptions())
    def answer(params: types.DocumentLinkParams) -> list[types.DocumentLink] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        return [
            types.DocumentLink(
                range=to.range_of(link.range),
                target=uri_of(link.target) if link.is_file else link.target,
                tooltip=link.tooltip,
            )
            for link in links(session.analysed(document))
        ]

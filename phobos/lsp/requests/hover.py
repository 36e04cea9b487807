"""`textDocument/hover`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.hover import hover
from phobos.lsp.convert import converter, markup
from phobos.lsp.server import Server


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_HOVER)
    def answer(params: types.HoverParams) -> types.Hover | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        found = hover(session.analysed(document), to.offset(params.position))
        if found is None:
            return None
        return types.Hover(markup(found.markdown, session.client.hover_format), to.range_of(found.range))

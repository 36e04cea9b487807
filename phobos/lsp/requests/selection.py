"""`textDocument/selectionRange`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.selection import selection
from phobos.lsp.convert import converter
from phobos.lsp.server import Server


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_SELECTION_RANGE)
    def answer(params: types.SelectionRangeParams) -> list[types.SelectionRange] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        analysed = session.analysed(document)
        answers = []
        for position in params.positions:
            outer: types.SelectionRange | None = None
            for range in reversed(selection(analysed, to.offset(position))):
                outer = types.SelectionRange(to.range_of(range), outer)
            assert outer is not None
            answers.append(outer)
        return answers

"""`textDocument/foldingRange`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.folding import folds
from phobos.lsp.convert import converter
from phobos.lsp.server import Server


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_FOLDING_RANGE)
    def answer(params: types.FoldingRangeParams) -> list[types.FoldingRange] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        ranges = []
        for fold in folds(session.analysed(document)):
            span = to.range_of(fold.range)
            last = span.end.line
            if session.client.lines_only_folding and document.text[fold.range.end - 1 : fold.range.end] == "}":
                last -= 1  # the closing brace stays in sight
            if last > span.start.line:
                found = types.FoldingRange(span.start.line, last)
                if not session.client.lines_only_folding:
                    found.start_character, found.end_character = span.start.character, span.end.character
                if fold.kind == "comment":
                    found.kind = types.FoldingRangeKind.Comment
                ranges.append(found)
        return ranges

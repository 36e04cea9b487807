"""`textDocument/foldingRange`."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from phobos.ide.folding import folds
from phobos.lsp.convert import Ready, converter
from phobos.lsp.server import Server


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_FOLDING_RANGE)
    def answer(params: types.FoldingRangeParams) -> Ready | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        lines_only = session.client.lines_only_folding
        ranges = []
        for fold in folds(session.analysed(document)):
            span = to.json(fold.range)
            first, last = span["start"]["line"], span["end"]["line"]
            if lines_only and document.text[fold.range.end - 1 : fold.range.end] == "}":
                last -= 1  # the closing brace stays in sight
            if last > first:
                found: dict[str, Any] = {"startLine": first, "endLine": last}
                if not lines_only:
                    found["startCharacter"] = span["start"]["character"]
                    found["endCharacter"] = span["end"]["character"]
                if fold.kind == "comment":
                    found["kind"] = types.FoldingRangeKind.Comment.value
                ranges.append(found)
        return Ready(ranges)

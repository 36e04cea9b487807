"""`textDocument/formatting`, `/rangeFormatting` and `/onTypeFormatting`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.formatting import Edit, format_document, format_range, format_typed
from phobos.lsp.convert import converter
from phobos.lsp.server import Server
from phobos.lsp.session import Opened


def register(server: Server) -> None:
    session = server.session

    def sent(document: Opened, edits: list[Edit]) -> list[types.TextEdit]:
        to = converter(session, document)
        return [to.edit(*edit) for edit in edits]

    def length(document: Opened) -> int:
        return session.configuration(document).line_length

    @server.serve(types.TEXT_DOCUMENT_FORMATTING)
    def whole(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        return sent(document, format_document(session.analysed(document), length(document)))

    @server.serve(types.TEXT_DOCUMENT_RANGE_FORMATTING)
    def ranged(params: types.DocumentRangeFormattingParams) -> list[types.TextEdit] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        within = converter(session, document).offsets(params.range)
        return sent(document, format_range(session.analysed(document), within, length(document)))

    options = types.DocumentOnTypeFormattingOptions(first_trigger_character="}", more_trigger_character=["\n"])

    @server.serve(types.TEXT_DOCUMENT_ON_TYPE_FORMATTING, options)
    def typed(params: types.DocumentOnTypeFormattingParams) -> list[types.TextEdit] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        offset = converter(session, document).offset(params.position)
        return sent(document, format_typed(session.analysed(document), offset, params.ch, length(document)))

"""`textDocument/inlayHint`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.hints import hints
from phobos.lsp.convert import converter
from phobos.lsp.server import Server


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_INLAY_HINT)
    def answer(params: types.InlayHintParams) -> list[types.InlayHint] | None:
        document = session.ready(params.text_document.uri)
        settings = session.settings
        if document is None or not (settings.hint_types or settings.hint_varying):
            return None
        to = converter(session, document)
        found = hints(session.analysed(document), to.offsets(params.range), settings.hint_types, settings.hint_varying)
        return [
            types.InlayHint(
                position=to.position(hint.offset),
                label=hint.text,
                kind=types.InlayHintKind.Type if hint.kind == "type" else None,
                tooltip=hint.tooltip or None,
                text_edits=[to.edit(hint.offset, hint.offset, hint.insert)] if hint.insert else None,
                padding_left=False,
                padding_right=False,
            )
            for hint in found
        ]

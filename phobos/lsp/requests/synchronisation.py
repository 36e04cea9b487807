"""`textDocument/didOpen`, `didChange`, `didSave`, `didClose`: the session's texts are the client's."""

from __future__ import annotations

from lsprotocol import types

from phobos.lsp.server import Server


def register(server: Server) -> None:
    session, publisher = server.session, server.publisher

    @server.serve(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        publisher.opened(session.open(item.uri, item.text, item.version))

    @server.serve(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        identifier = params.text_document
        document = session.document(identifier.uri)
        if document is None or not document.is_open:  # a change of what was never opened
            document = session.open(identifier.uri, document.text if document is not None else "", identifier.version)
        document.change(params.content_changes, session.encoding)
        document.version = identifier.version
        publisher.changed(document)

    @server.serve(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        document = session.documents.get(session.document_key(params.text_document.uri))
        if document is not None:
            publisher.saved(document)

    @server.serve(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        document = session.close(params.text_document.uri)
        if document is not None:
            publisher.closed(document)
            for forget in server.on_close:
                forget(document.key)

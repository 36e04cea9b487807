"""`textDocument/prepareRename` and `textDocument/rename`."""

from __future__ import annotations

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from phobos.ide.rename import RenameRefused, prepare, rename
from phobos.lsp.convert import converter, workspace_edit
from phobos.lsp.server import Server

REQUEST_FAILED = -32803


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepared(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        try:
            found = prepare(session.analysed(document), to.offset(params.position))
        except RenameRefused as refused:
            raise _failed(refused) from None
        return types.PrepareRenamePlaceholder(
            range=to.range_of(found), placeholder=document.text[found.start : found.end]
        )

    @server.serve(types.TEXT_DOCUMENT_RENAME)
    def renamed(params: types.RenameParams) -> types.WorkspaceEdit | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        if not params.new_name:
            raise JsonRpcInvalidParams("the new name is empty")
        to = converter(session, document)
        try:
            places = rename(session.analysed(document), to.offset(params.position), params.new_name)
        except RenameRefused as refused:
            raise _failed(refused) from None
        return workspace_edit(session, document, [(place.start, place.end, params.new_name) for place in places])


def _failed(refused: RenameRefused) -> JsonRpcException:
    """The editor shows this sentence to the user."""
    return JsonRpcException(message=str(refused), code=REQUEST_FAILED)

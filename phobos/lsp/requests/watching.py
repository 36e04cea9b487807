"""`workspace/didChangeWatchedFiles`: a configuration or a kernel file changed outside the editor."""

from __future__ import annotations

from lsprotocol import types

from phobos.lsp.server import Server


def register(server: Server) -> None:
    @server.serve(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def changed(params: types.DidChangeWatchedFilesParams) -> None:
        if any(change.uri.endswith(".toml") for change in params.changes):
            server.session.configurations.forget()
            server.publisher.everything()
        else:  # kernels that are open are the client's; the others are read anew when they are asked for
            server.sweeper.soon()
            server.refresh()

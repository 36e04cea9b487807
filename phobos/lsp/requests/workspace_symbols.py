"""`workspace/symbol`: kernels and functions of every file in the workspace."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.symbols import matches, outline
from phobos.lsp.convert import converter
from phobos.lsp.requests.symbols import KINDS
from phobos.lsp.server import Server
from phobos.lsp.workers import JobFailed

MOST = 500


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.WORKSPACE_SYMBOL)
    async def answer(params: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
        found: list[types.WorkspaceSymbol] = []
        for document in list(session.documents.values()):
            if document.is_large:
                continue
            to = converter(session, document)
            for part in outline(session.analysed(document)):
                if matches(params.query, part.name):
                    found.append(_symbol(part.name, part.kind, to.location(part.name_range)))
        folders = list(session.folder_paths())
        if folders:
            try:
                names = await server.scanners.run("names", folders=folders, encoding=session.encoding)
            except JobFailed as error:
                server.log_to_client(str(error), types.MessageType.Error)
                names = []
            assert isinstance(names, list)
            for path, name, kind, start, end in names:
                uri = session.uri_for(path)
                if session.document_key(uri) not in session.documents and matches(params.query, name):
                    range = types.Range(types.Position(*start), types.Position(*end))
                    found.append(_symbol(name, kind, types.Location(uri, range)))
        found.sort(key=lambda symbol: (not symbol.name.startswith(params.query), symbol.name))
        return found[:MOST]


def _symbol(name: str, kind: str, location: types.Location) -> types.WorkspaceSymbol:
    return types.WorkspaceSymbol(name=name, kind=KINDS[kind], location=location)

"""`textDocument/diagnostic` and `workspace/diagnostic`, registered for clients that pull."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from lsprotocol import types

from phobos.lsp import convert
from phobos.lsp.scanning import Scan
from phobos.lsp.server import Server

IDENTIFIER = "phobos"


def register(server: Server) -> None:
    session, publisher = server.session, server.publisher
    options = types.DiagnosticOptions(
        identifier=IDENTIFIER, inter_file_dependencies=False, workspace_diagnostics=True, work_done_progress=True
    )

    @server.serve(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    async def pulled(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        document = session.document(params.text_document.uri)
        if document is None:  # nothing there: nothing to say of it
            return types.RelatedFullDocumentDiagnosticReport(items=[])
        await session.settle(document)
        server.collector.rested()
        result, items = publisher.current(document)
        if result and result == params.previous_result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=result)
        return types.RelatedFullDocumentDiagnosticReport(items=items, result_id=result or None)

    scan = Scan(server)

    @server.serve(types.WORKSPACE_DIAGNOSTIC)
    async def workspace(params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
        if not session.settings.workspace:
            return types.WorkspaceDiagnosticReport(items=[])
        known = {session.document_key(previous.uri): previous for previous in params.previous_result_ids}
        reports: list[types.WorkspaceDocumentDiagnosticReport] = []
        async with contextlib.aclosing(_reports(server, scan, known, params.work_done_token)) as found:
            async for report in found:
                if params.partial_result_token is None:
                    reports.append(report)
                else:
                    value = types.WorkspaceDiagnosticReportPartialResult(items=[report])
                    server.progress(types.ProgressParams(params.partial_result_token, value))
        return types.WorkspaceDiagnosticReport(items=reports)


async def _reports(
    server: Server, scan: Scan, known: dict[str, types.PreviousResultId], token: int | str | None
) -> AsyncGenerator[types.WorkspaceDocumentDiagnosticReport]:
    session = server.session
    seen: set[str] = set()
    for document in list(session.documents.values()):
        seen.add(document.key)
        await session.settle(document)
        result, items = server.publisher.current(document)
        yield _report(document.uri, document.version, result, items, known.get(document.key))
    async for file in scan.files(token):
        if file.document.key in session.documents:
            continue
        seen.add(file.document.key)
        items = convert.diagnostics(session, file.document, file.findings)
        yield _report(session.uri_for(file.path), None, file.result_id, items, known.get(file.document.key))
    for key in known.keys() - seen:  # gone meanwhile: its findings go too
        yield types.WorkspaceFullDocumentDiagnosticReport(uri=known[key].uri, version=None, items=[])


def _report(
    uri: str, version: int | None, result: str, items: list[types.Diagnostic], known: types.PreviousResultId | None
) -> types.WorkspaceDocumentDiagnosticReport:
    if result and known is not None and result == known.value:
        return types.WorkspaceUnchangedDocumentDiagnosticReport(uri=uri, version=version, result_id=result)
    return types.WorkspaceFullDocumentDiagnosticReport(
        uri=uri, version=version, items=items, result_id=result or None
    )



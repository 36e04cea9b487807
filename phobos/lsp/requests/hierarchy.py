"""`textDocument/prepareCallHierarchy`, `callHierarchy/incomingCalls`, `callHierarchy/outgoingCalls`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.hierarchy import Caller, incoming, outgoing, prepare
from phobos.lsp.convert import Converter, converter
from phobos.lsp.server import Server


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)
    def prepared(params: types.CallHierarchyPrepareParams) -> list[types.CallHierarchyItem] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        found = prepare(session.analysed(document), to.offset(params.position))
        return None if found is None else [_item(to, found)]

    @server.serve(types.CALL_HIERARCHY_INCOMING_CALLS)
    def into(params: types.CallHierarchyIncomingCallsParams) -> list[types.CallHierarchyIncomingCall] | None:
        document = session.ready(params.item.uri)
        if document is None:
            return None
        to = converter(session, document)
        return [
            types.CallHierarchyIncomingCall(_item(to, caller), [to.range_of(call) for call in caller.calls])
            for caller in incoming(session.analysed(document), params.item.name)
        ]

    @server.serve(types.CALL_HIERARCHY_OUTGOING_CALLS)
    def out_of(params: types.CallHierarchyOutgoingCallsParams) -> list[types.CallHierarchyOutgoingCall] | None:
        document = session.ready(params.item.uri)
        if document is None:
            return None
        to = converter(session, document)
        start = to.offset(params.item.selection_range.start)
        return [
            types.CallHierarchyOutgoingCall(_item(to, callee), [to.range_of(call) for call in callee.calls])
            for callee in outgoing(session.analysed(document), start)
        ]


def _item(to: Converter, caller: Caller) -> types.CallHierarchyItem:
    return types.CallHierarchyItem(
        name=caller.name,
        kind=types.SymbolKind.Function,
        detail="kernel" if caller.is_kernel else "fn",
        uri=to.document.uri,
        range=to.range_of(caller.range),
        selection_range=to.range_of(caller.name_range),
    )

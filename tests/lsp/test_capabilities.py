"""The server says it can do exactly what it does: what is advertised is served, what is served is advertised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder

from phobos.lsp.requests import diagnostics
from phobos.lsp.server import Server, create
from tests.lsp.editors import EDITORS, capabilities, plain
from tests.lsp.wire import Wire

# What each advertised capability promises to answer.
PROMISES: dict[str, tuple[str, ...]] = {
    "completion_provider": (types.TEXT_DOCUMENT_COMPLETION,),
    "hover_provider": (types.TEXT_DOCUMENT_HOVER,),
    "signature_help_provider": (types.TEXT_DOCUMENT_SIGNATURE_HELP,),
    "definition_provider": (types.TEXT_DOCUMENT_DEFINITION,),
    "type_definition_provider": (types.TEXT_DOCUMENT_TYPE_DEFINITION,),
    "references_provider": (types.TEXT_DOCUMENT_REFERENCES,),
    "document_highlight_provider": (types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT,),
    "document_symbol_provider": (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL,),
    "code_action_provider": (types.TEXT_DOCUMENT_CODE_ACTION,),
    "code_lens_provider": (types.TEXT_DOCUMENT_CODE_LENS,),
    "document_link_provider": (types.TEXT_DOCUMENT_DOCUMENT_LINK,),
    "workspace_symbol_provider": (types.WORKSPACE_SYMBOL,),
    "document_formatting_provider": (types.TEXT_DOCUMENT_FORMATTING,),
    "document_range_formatting_provider": (types.TEXT_DOCUMENT_RANGE_FORMATTING,),
    "document_on_type_formatting_provider": (types.TEXT_DOCUMENT_ON_TYPE_FORMATTING,),
    "rename_provider": (types.TEXT_DOCUMENT_RENAME, types.TEXT_DOCUMENT_PREPARE_RENAME),
    "folding_range_provider": (types.TEXT_DOCUMENT_FOLDING_RANGE,),
    "selection_range_provider": (types.TEXT_DOCUMENT_SELECTION_RANGE,),
    "call_hierarchy_provider": (
        types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY,
        types.CALL_HIERARCHY_INCOMING_CALLS,
        types.CALL_HIERARCHY_OUTGOING_CALLS,
    ),
    "semantic_tokens_provider": (
        types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
        types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA,
        types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE,
    ),
    "inlay_hint_provider": (types.TEXT_DOCUMENT_INLAY_HINT,),
    "diagnostic_provider": (types.TEXT_DOCUMENT_DIAGNOSTIC, types.WORKSPACE_DIAGNOSTIC),
}

# Served without being advertised by a provider of their own.
NOTIFICATIONS = {
    types.INITIALIZE,
    types.INITIALIZED,
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_SAVE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
}


def _server(editor: str) -> tuple[Server, types.ServerCapabilities]:
    """A server as it stands after `initialize` of that editor."""
    server = create()
    client = capabilities(editor)
    if client.text_document is not None and client.text_document.diagnostic is not None:
        diagnostics.register(server)
    manager = server.protocol.fm
    features = {*manager.features, *manager.builtin_features}
    built = ServerCapabilitiesBuilder(
        client, features, manager.feature_options, list(manager.commands), types.TextDocumentSyncKind.Incremental
    ).build()
    return server, built


@pytest.mark.parametrize("editor", EDITORS)
def test_what_is_advertised_is_registered_and_the_other_way_round(editor: str) -> None:
    server, built = _server(editor)
    advertised = {name for name in dir(built) if name.endswith("_provider") and getattr(built, name) is not None}
    assert advertised - {"execute_command_provider"} == {
        name for name, methods in PROMISES.items() if set(methods) <= set(server.protocol.fm.features)
    }
    promised = {method for name in advertised & PROMISES.keys() for method in PROMISES[name]}
    assert set(server.protocol.fm.features) == promised | NOTIFICATIONS
    assert built.execute_command_provider is not None
    assert list(built.execute_command_provider.commands) == list(server.protocol.fm.commands)


def test_diagnostics_are_offered_to_those_who_pull_only() -> None:
    assert _server("vscode")[1].diagnostic_provider is not None
    assert _server("emacs")[1].diagnostic_provider is None


# The least that each method can be asked with.
_URI = "file:///code/x/a.ph"
_DOCUMENT = {"textDocument": {"uri": _URI}}
_AT = {**_DOCUMENT, "position": {"line": 0, "character": 8}}
_RANGE = {"start": {"line": 0, "character": 0}, "end": {"line": 3, "character": 0}}
_OPTIONS = {"options": {"tabSize": 2, "insertSpaces": True}}
_ITEM = {"name": "k", "kind": 12, "uri": _URI, "range": _RANGE, "selectionRange": _RANGE}
ASKED: dict[str, Any] = {
    types.TEXT_DOCUMENT_COMPLETION: _AT,
    types.TEXT_DOCUMENT_HOVER: _AT,
    types.TEXT_DOCUMENT_SIGNATURE_HELP: _AT,
    types.TEXT_DOCUMENT_DEFINITION: _AT,
    types.TEXT_DOCUMENT_TYPE_DEFINITION: _AT,
    types.TEXT_DOCUMENT_REFERENCES: {**_AT, "context": {"includeDeclaration": True}},
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: _AT,
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: _DOCUMENT,
    types.TEXT_DOCUMENT_CODE_ACTION: {**_DOCUMENT, "range": _RANGE, "context": {"diagnostics": []}},
    types.TEXT_DOCUMENT_CODE_LENS: _DOCUMENT,
    types.TEXT_DOCUMENT_DOCUMENT_LINK: _DOCUMENT,
    types.WORKSPACE_SYMBOL: {"query": "k"},
    types.TEXT_DOCUMENT_FORMATTING: {**_DOCUMENT, **_OPTIONS},
    types.TEXT_DOCUMENT_RANGE_FORMATTING: {**_DOCUMENT, **_OPTIONS, "range": _RANGE},
    types.TEXT_DOCUMENT_ON_TYPE_FORMATTING: {**_AT, **_OPTIONS, "ch": "}"},
    types.TEXT_DOCUMENT_RENAME: {**_AT, "newName": "other"},
    types.TEXT_DOCUMENT_PREPARE_RENAME: _AT,
    types.TEXT_DOCUMENT_FOLDING_RANGE: _DOCUMENT,
    types.TEXT_DOCUMENT_SELECTION_RANGE: {**_DOCUMENT, "positions": [{"line": 0, "character": 8}]},
    types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY: _AT,
    types.CALL_HIERARCHY_INCOMING_CALLS: {"item": _ITEM},
    types.CALL_HIERARCHY_OUTGOING_CALLS: {"item": _ITEM},
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: _DOCUMENT,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA: {**_DOCUMENT, "previousResultId": "1"},
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE: {**_DOCUMENT, "range": _RANGE},
    types.TEXT_DOCUMENT_INLAY_HINT: {**_DOCUMENT, "range": _RANGE},
    types.TEXT_DOCUMENT_DIAGNOSTIC: _DOCUMENT,
    types.WORKSPACE_DIAGNOSTIC: {"previousResultIds": []},
}


def test_everything_that_is_advertised_answers(start: Callable[..., Wire]) -> None:
    wire = start()
    wire.start(plain("vscode"))
    wire.open(_URI, "kernel k(X: tensor<f32>[N]) {\n  let a = 1\n  X[a] = 1.0\n}\n")
    for methods in PROMISES.values():
        for method in methods:
            wire.request(method, ASKED[method])  # an error would be raised

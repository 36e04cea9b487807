"""What three editors say of themselves in `initialize`: Neovim 0.11 and Emacs 29 as recorded, VS Code by hand.

pytest-lsp's recording of VS Code is from 2022 and knows no pulled diagnostics, so its capabilities of 2026 are
written here, as far as a language server can notice them.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import converters, types

_VSCODE: dict[str, Any] = {
    "general": {
        "positionEncodings": ["utf-16"],
        "staleRequestSupport": {"cancel": True, "retryOnContentModified": []},
        "markdown": {"parser": "marked", "version": "1.1.0"},
        "regularExpressions": {"engine": "ECMAScript", "version": "ES2020"},
    },
    "window": {"workDoneProgress": True, "showMessage": {}, "showDocument": {"support": True}},
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True, "failureHandling": "textOnlyTransactional"},
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "symbol": {"dynamicRegistration": True},
        "executeCommand": {"dynamicRegistration": True},
        "workspaceFolders": True,
        "configuration": True,
        "semanticTokens": {"refreshSupport": True},
        "codeLens": {"refreshSupport": True},
        "inlayHint": {"refreshSupport": True},
        "diagnostics": {"refreshSupport": True},
        "foldingRange": {"refreshSupport": True},
    },
    "textDocument": {
        "synchronization": {"willSave": True, "willSaveWaitUntil": True, "didSave": True},
        "publishDiagnostics": {
            "relatedInformation": True, "versionSupport": False, "codeDescriptionSupport": True, "dataSupport": True,
            "tagSupport": {"valueSet": [1, 2]},
        },
        "diagnostic": {
            "dynamicRegistration": True, "relatedDocumentSupport": False, "relatedInformation": True,
            "codeDescriptionSupport": True, "dataSupport": True, "tagSupport": {"valueSet": [1, 2]},
        },
        "completion": {
            "contextSupport": True,
            "completionItem": {
                "snippetSupport": True, "commitCharactersSupport": True,
                "documentationFormat": ["markdown", "plaintext"],
                "deprecatedSupport": True, "preselectSupport": True, "insertReplaceSupport": True,
                "labelDetailsSupport": True,
                "resolveSupport": {"properties": ["documentation", "detail", "additionalTextEdits"]},
            },
        },
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "signatureHelp": {
            "signatureInformation": {
                "documentationFormat": ["markdown", "plaintext"], "activeParameterSupport": True,
                "parameterInformation": {"labelOffsetSupport": True},
            },
        },
        "definition": {"linkSupport": True},
        "typeDefinition": {"linkSupport": True},
        "references": {},
        "documentHighlight": {},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "codeAction": {
            "isPreferredSupport": True, "disabledSupport": True, "dataSupport": True,
            "resolveSupport": {"properties": ["edit", "command"]},
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "quickfix", "source", "source.fixAll"]}},
        },
        "codeLens": {},
        "formatting": {},
        "rangeFormatting": {},
        "onTypeFormatting": {},
        "rename": {"prepareSupport": True, "prepareSupportDefaultBehavior": 1},
        "documentLink": {"tooltipSupport": True},
        "foldingRange": {"rangeLimit": 5000, "lineFoldingOnly": True},
        "selectionRange": {},
        "callHierarchy": {},
        "semanticTokens": {
            "requests": {"range": True, "full": {"delta": True}}, "formats": ["relative"],
            "tokenTypes": ["function", "variable", "parameter", "type"], "tokenModifiers": ["declaration", "readonly"],
            "overlappingTokenSupport": False, "multilineTokenSupport": False,
        },
        "inlayHint": {"resolveSupport": {"properties": ["tooltip"]}},
    },
}  # fmt: skip

EDITORS = ("neovim", "vscode", "emacs")
ENCODINGS = {"neovim": "utf-8", "vscode": "utf-16", "emacs": "utf-32"}


def capabilities(editor: str) -> types.ClientCapabilities:
    if editor in ("neovim", "emacs"):
        from pytest_lsp import client_capabilities  # VS Code's need no package
    match editor:
        case "neovim":
            return client_capabilities("neovim@0.11")
        case "emacs":
            return client_capabilities("emacs")
        case _:
            return converters.get_converter().structure(_VSCODE, types.ClientCapabilities)


def plain(editor: str) -> dict[str, Any]:
    """The same as JSON, for a client that speaks bytes."""
    found = converters.get_converter().unstructure(capabilities(editor), types.ClientCapabilities)
    assert isinstance(found, dict)
    return found

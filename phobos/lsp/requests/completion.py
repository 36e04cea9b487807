"""`textDocument/completion`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.completion import Completion, completions
from phobos.lsp.convert import Converter, converter, documentation
from phobos.lsp.server import Server

KINDS = {
    "keyword": types.CompletionItemKind.Keyword,
    "builtin": types.CompletionItemKind.Function,
    "function": types.CompletionItemKind.Function,
    "tensor": types.CompletionItemKind.Reference,
    "tile": types.CompletionItemKind.Variable,
    "parameter": types.CompletionItemKind.Variable,
    "dimension": types.CompletionItemKind.Unit,
    "constant": types.CompletionItemKind.Constant,
    "variable": types.CompletionItemKind.Variable,
    "attribute": types.CompletionItemKind.Property,
    "member": types.CompletionItemKind.Field,
    "type": types.CompletionItemKind.TypeParameter,
    "value": types.CompletionItemKind.Value,
    "rule": types.CompletionItemKind.EnumMember,
}
TRIGGERS = ["@", ".", "[", "<", ":", "=", "("]


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS))
    def answer(params: types.CompletionParams) -> types.CompletionList | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        found = completions(session.analysed(document), to.offset(params.position))
        return types.CompletionList(is_incomplete=False, items=[_item(server, to, one) for one in found])


def _item(server: Server, to: Converter, one: Completion) -> types.CompletionItem:
    client = server.session.client
    snippet = client.snippets and one.snippet is not None and one.snippet != one.insert
    text = one.snippet if snippet and one.snippet is not None else one.insert
    return types.CompletionItem(
        label=one.label,
        kind=KINDS[one.kind],
        detail=one.detail or None,
        documentation=documentation(one.documentation, client.completion_format),
        sort_text=f"{one.rank:02}{one.label}",
        filter_text=one.insert if not one.insert.startswith(one.label) else None,
        insert_text_format=types.InsertTextFormat.Snippet if snippet else types.InsertTextFormat.PlainText,
        text_edit=types.TextEdit(to.range_of(one.range), text),
    )

"""`textDocument/completion`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lsprotocol import types

from phobos.ide.completion import Completion, completions
from phobos.ide.document import Range
from phobos.lsp.client import Client, Format
from phobos.lsp.convert import Ready, converter, documentation
from phobos.lsp.server import Server

KINDS: dict[str, int] = {
    "keyword": types.CompletionItemKind.Keyword.value,
    "builtin": types.CompletionItemKind.Function.value,
    "function": types.CompletionItemKind.Function.value,
    "tensor": types.CompletionItemKind.Reference.value,
    "tile": types.CompletionItemKind.Variable.value,
    "parameter": types.CompletionItemKind.Variable.value,
    "dimension": types.CompletionItemKind.Unit.value,
    "constant": types.CompletionItemKind.Constant.value,
    "variable": types.CompletionItemKind.Variable.value,
    "attribute": types.CompletionItemKind.Property.value,
    "member": types.CompletionItemKind.Field.value,
    "type": types.CompletionItemKind.TypeParameter.value,
    "value": types.CompletionItemKind.Value.value,
    "rule": types.CompletionItemKind.EnumMember.value,
}
PLAIN, SNIPPET = types.InsertTextFormat.PlainText.value, types.InsertTextFormat.Snippet.value
TRIGGERS = ["@", ".", "[", "<", ":", "=", "("]


def register(server: Server) -> None:
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS))
    def answer(params: types.CompletionParams) -> Ready | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        found = completions(session.analysed(document), to.offset(params.position))
        ranges: dict[Range, Any] = {}  # nearly always one for all
        for one in found:
            if one.range not in ranges:
                ranges[one.range] = to.json(one.range)
        items = [_item(session.client, one, ranges[one.range]) for one in found]
        return Ready({"isIncomplete": False, "items": items})


def _item(client: Client, one: Completion, range: Any) -> dict[str, Any]:
    """A `CompletionItem`."""
    snippet = client.snippets and one.snippet is not None and one.snippet != one.insert
    item = {
        "label": one.label,
        "kind": KINDS[one.kind],
        "sortText": f"{one.rank:02}{one.label}",
        "insertTextFormat": SNIPPET if snippet else PLAIN,
        "textEdit": {"range": range, "newText": one.snippet if snippet else one.insert},
    }
    if one.detail:
        item["detail"] = one.detail
    if one.documentation:
        item["documentation"] = _documentation(one.documentation, client.completion_format)
    if not one.insert.startswith(one.label):
        item["filterText"] = one.insert
    return item


@lru_cache(maxsize=1024)
def _documentation(markdown: str, format: Format) -> Any:
    made = documentation(markdown, format)
    return {"kind": made.kind.value, "value": made.value} if isinstance(made, types.MarkupContent) else made

"""`textDocument/codeAction`: fixes, fix all, suppress, explain, show it happen."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.actions import Action, actions, fix_all
from phobos.lsp.convert import Converter, converter, diagnostic, workspace_edit
from phobos.lsp.requests.commands import EXPLAIN, HAPPEN
from phobos.lsp.server import Server
from phobos.lsp.session import Opened

FIX_ALL = "source.fixAll.phobos"
KINDS: dict[str, str] = {
    "fix": types.CodeActionKind.QuickFix.value,
    "fix-all": types.CodeActionKind.QuickFix.value,
    "suppress": types.CodeActionKind.QuickFix.value,
    "explain": types.CodeActionKind.QuickFix.value,
    "happen": types.CodeActionKind.QuickFix.value,
    "source-fix-all": FIX_ALL,
}


def register(server: Server) -> None:
    session = server.session
    options = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL])

    @server.serve(types.TEXT_DOCUMENT_CODE_ACTION, options)
    def answer(params: types.CodeActionParams) -> list[types.CodeAction | types.Command] | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        analysed = session.judged(document)
        wanted = [getattr(kind, "value", kind) for kind in params.context.only or ()]
        found = actions(analysed, to.offsets(params.range))
        whole = fix_all(analysed)
        if whole is not None and (wanted or not _automatic(params)):
            found.append(whole)
        found = [a for a in found if not wanted or any(_within(KINDS[a.kind], kind) for kind in wanted)]
        made = [_action(server, document, to, action) for action in found]
        if session.client.code_action_literals:
            return list(made)
        return [action.command for action in made if action.command is not None]  # an old client: commands only


def _automatic(params: types.CodeActionParams) -> bool:
    return params.context.trigger_kind == types.CodeActionTriggerKind.Automatic


def _within(kind: str, wanted: str) -> bool:
    """Whether a kind is `wanted` or below it: `source.fixAll.phobos` is a `source.fixAll` and a `source`."""
    return wanted == "" or kind == wanted or kind.startswith(wanted + ".")


def _action(server: Server, document: Opened, to: Converter, action: Action) -> types.CodeAction:
    session = server.session
    command = None
    if action.kind == "explain":
        command = types.Command(title="Explain", command=EXPLAIN, arguments=[action.code])
    elif action.kind == "happen":
        arguments = [document.uri, action.kernel, action.code]
        command = types.Command(title="Show it happen", command=HAPPEN, arguments=arguments)
    return types.CodeAction(
        title=action.title,
        kind=KINDS[action.kind],
        diagnostics=[diagnostic(session.client, to, action.finding)] if action.finding is not None else None,
        is_preferred=action.preferred or None,
        edit=workspace_edit(session, document, action.edits) if action.edits else None,
        command=command,
    )

"""What the client on the other end can do, read once from its `initialize` request, and what its user has set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from lsprotocol import types
from pygls.capabilities import get_capability

from phobos.value import value

Format = Literal["markdown", "plaintext", "string"]
"""What documentation may be: Markdown, plain text in the protocol's wrapping, or (an old client) a bare string."""


@value
class Client:
    """Answers of the client's capabilities; what it does not mention it cannot do."""

    pulls: bool  # asks for diagnostics, so none are pushed
    related: bool
    tags: bool
    code_links: bool
    hover_format: Format
    completion_format: Format
    signature_format: Format
    snippets: bool
    label_offsets: bool
    symbol_tree: bool
    code_action_literals: bool
    lines_only_folding: bool
    versioned_edits: bool
    shows_documents: bool
    progress: bool
    configuration: bool
    watches_files: bool
    refreshes_diagnostics: bool
    refreshes_tokens: bool
    refreshes_hints: bool
    refreshes_lenses: bool


def client_of(capabilities: types.ClientCapabilities) -> Client:
    def has(path: str) -> bool:
        return bool(get_capability(capabilities, path, None))

    def format(path: str) -> Format:
        accepted = get_capability(capabilities, path, None)
        if accepted is None:
            return "string"
        return "markdown" if types.MarkupKind.Markdown in accepted else "plaintext"

    push, pull = "text_document.publish_diagnostics", "text_document.diagnostic"
    pulls = get_capability(capabilities, pull, None) is not None

    def diagnostics(name: str) -> bool:
        # Clients that pull say what a diagnostic may hold in either place; older ones only in the first.
        return has(f"{push}.{name}") or has(f"{pull}.{name}")

    item = "text_document.completion.completion_item"
    signature = "text_document.signature_help.signature_information"
    return Client(
        pulls=pulls,
        related=diagnostics("related_information"),
        tags=diagnostics("tag_support"),
        code_links=diagnostics("code_description_support"),
        hover_format=format("text_document.hover.content_format"),
        completion_format=format(f"{item}.documentation_format"),
        signature_format=format(f"{signature}.documentation_format"),
        snippets=has(f"{item}.snippet_support"),
        label_offsets=has(f"{signature}.parameter_information.label_offset_support"),
        symbol_tree=has("text_document.document_symbol.hierarchical_document_symbol_support"),
        code_action_literals=get_capability(capabilities, "text_document.code_action.code_action_literal_support")
        is not None,
        lines_only_folding=has("text_document.folding_range.line_folding_only"),
        versioned_edits=has("workspace.workspace_edit.document_changes"),
        shows_documents=has("window.show_document.support"),
        progress=has("window.work_done_progress"),
        configuration=has("workspace.configuration"),
        watches_files=has("workspace.did_change_watched_files.dynamic_registration"),
        refreshes_diagnostics=has("workspace.diagnostics.refresh_support"),
        refreshes_tokens=has("workspace.semantic_tokens.refresh_support"),
        refreshes_hints=has("workspace.inlay_hint.refresh_support"),
        refreshes_lenses=has("workspace.code_lens.refresh_support"),
    )


@value
class Settings:
    """The `phobos` section of the client's settings; `initializationOptions` hold the same keys.

    `configuration`: a `phobos.toml` to use for every file. `cards`: what lenses speak of, before the
    configuration's `target`. `compiler` and `run` are off in a workspace that the user does not trust.
    """

    configuration: str | None = None
    hint_types: bool = True
    hint_varying: bool = True
    lenses: bool = True
    cards: tuple[str, ...] = ()
    compiler: bool = True
    run: bool = True
    prove_on_save: bool = False
    workspace: bool = True
    debounce_ms: int = 25


def settings_of(section: object) -> tuple[Settings, list[str]]:
    """Settings from what the client sent, and a sentence for each key that holds something else than it should."""
    complaints: list[str] = []
    if section is None:
        return Settings(), complaints
    if not isinstance(section, Mapping):
        return Settings(), ["the settings `phobos` must be an object"]

    def read(path: str, kind: type, default: object) -> object:
        found: object = section
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if found is None:
            return default
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            complaints.append(f"`phobos.{path}` must be {_KIND_NAMES[kind]}; it is ignored")
            return default
        return found

    cards = read("cards", list, [])
    assert isinstance(cards, list)
    configuration = read("configuration", str, None)
    settings = Settings(
        configuration=str(configuration) if configuration else None,
        hint_types=bool(read("inlayHints.types", bool, True)),
        hint_varying=bool(read("inlayHints.blockVarying", bool, True)),
        lenses=bool(read("codeLens.enable", bool, True)),
        cards=tuple(str(card) for card in cards),
        compiler=bool(read("nvrtc.enable", bool, True)),
        run=bool(read("run.enable", bool, True)),
        prove_on_save=bool(read("proveOnSave", bool, False)),
        workspace=bool(read("workspaceDiagnostics", bool, True)),
        debounce_ms=max(0, min(2000, int(str(read("debounceMs", int, 25))))),
    )
    return settings, complaints


_KIND_NAMES = {bool: "true or false", str: "a string", list: "a list", int: "a whole number"}

"""One file a request. Each has `register(server)`; this file knows their list and the order, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phobos.lsp.server import Server


def register(server: Server) -> None:
    """Register everything that does not depend on the client (`lifecycle` adds the rest at `initialize`)."""
    from phobos.lsp.requests import (
        actions,
        commands,
        completion,
        definition,
        folding,
        formatting,
        hierarchy,
        highlight,
        hints,
        hover,
        lenses,
        lifecycle,
        links,
        references,
        rename,
        selection,
        signature,
        symbols,
        synchronisation,
        tokens,
        type_definition,
        watching,
        workspace_symbols,
    )

    for module in (
        lifecycle, synchronisation, watching, hover, completion, signature, definition, type_definition, references,
        highlight, rename, symbols, workspace_symbols, tokens, hints, actions, lenses, folding, selection, links,
        formatting, hierarchy, commands,
    ):  # fmt: skip
        module.register(server)

"""`textDocument/codeLens`: an estimate at once, what the compiler says as soon as a worker has asked it."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from phobos.codegen.cards import DEFAULT_TARGET
from phobos.ide.lens import Lens, Resources, lenses
from phobos.lsp.convert import converter
from phobos.lsp.requests.commands import CARDS, RUN, SHOW
from phobos.lsp.server import Server
from phobos.lsp.session import Opened
from phobos.lsp.workers import JobFailed

COMMANDS = {"run": RUN, "cuda": next(iter(SHOW)), "cards": CARDS}
QUIET_SECONDS = 0.7  # the compiler is asked when typing has stopped


def register(server: Server) -> None:
    compiled = Compiled(server)
    session = server.session

    @server.serve(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    def answer(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        document = session.ready(params.text_document.uri)
        if document is None or not session.settings.lenses:
            return None
        cards = session.settings.cards or session.configuration(document).target or (DEFAULT_TARGET,)
        known = compiled.of(document, cards) if session.settings.compiler else {}
        to = converter(session, document)
        return [
            types.CodeLens(range=to.range_of(lens.range), command=_command(document, lens))
            for lens in lenses(session.analysed(document), cards, known)
        ]


def _command(document: Opened, lens: Lens) -> types.Command:
    arguments: list[object] = [] if lens.action == "cards" else [document.uri, lens.kernel]
    return types.Command(title=lens.title, command=COMMANDS[lens.action], arguments=arguments)


class Compiled:
    """What the compiler said of a document's kernels, by text and cards; asks it in the background."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._known: dict[tuple[str, str, tuple[str, ...]], dict[str, tuple[Resources, ...]]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._off = False  # there is no compiler here: said once, not asked again

    def of(self, document: Opened, cards: tuple[str, ...]) -> dict[str, tuple[Resources, ...]]:
        key = (document.key, document.text, cards)
        known = self._known.get(key)
        if known is None and not self._off:
            before = self._asking.pop(document.key, None)
            if before is not None:
                before.cancel()
            self._asking[document.key] = self.server.spawn(self._ask(document, key))
        return known or {}

    async def _ask(self, document: Opened, key: tuple[str, str, tuple[str, ...]]) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        name = self.server.session.name_of(document)
        try:
            found = await self.server.workers.run("resources", path=name, text=key[1], cards=key[2])
        except JobFailed as error:
            self.server.log_to_client(str(error))
            found = {}
        if found is None:
            self._off = True
            return
        assert isinstance(found, dict)
        for old in [k for k in self._known if k[0] == document.key]:
            del self._known[old]
        self._known[key] = {k: tuple(Resources(*r) for r in rows) for k, rows in found.items()}
        if found and document.text == key[1] and self.server.session.client.refreshes_lenses:
            self.server.protocol.send_request(types.WORKSPACE_CODE_LENS_REFRESH, None)

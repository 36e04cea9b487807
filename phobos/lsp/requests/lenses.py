"""`textDocument/codeLens`: an estimate at once, what the compiler says as soon as a worker has asked it."""

from __future__ import annotations

import asyncio
import json

from lsprotocol import types

from phobos.codegen.cards import DEFAULT_TARGET
from phobos.ide.lens import Lens, Resources, lenses
from phobos.lsp import children
from phobos.lsp.convert import converter
from phobos.lsp.requests.commands import CARDS, RUN, SHOW
from phobos.lsp.server import Server
from phobos.lsp.session import Opened

COMMANDS = {"run": RUN, "cuda": next(iter(SHOW)), "cards": CARDS}
QUIET_SECONDS = 0.7  # the compiler is asked when typing has stopped


def register(server: Server) -> None:
    compiled = Compiled(server)
    server.on_close.append(compiled.forget)
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
    """What the compiler said of a document's kernels, by text and cards; `phobos occupancy` asks it, in a child."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._known: dict[str, tuple[tuple[str, tuple[str, ...]], dict[str, tuple[Resources, ...]]]] = {}
        self._asking: dict[str, tuple[tuple[str, tuple[str, ...]], asyncio.Task[None]]] = {}
        self._missing = False  # there is no compiler here: said once, not asked again

    def of(self, document: Opened, cards: tuple[str, ...]) -> dict[str, tuple[Resources, ...]]:
        """What is known of this very text; asks in the background for what is not."""
        asked = (document.text, cards)
        known = self._known.get(document.key)
        if known is not None and known[0] == asked:
            return known[1]
        under_way = self._asking.get(document.key)
        if not self._missing and (under_way is None or under_way[0] != asked):
            if under_way is not None:
                under_way[1].cancel()
            self._asking[document.key] = (asked, self.server.spawn(self._ask(document, cards)))
        return {}

    async def _ask(self, document: Opened, cards: tuple[str, ...]) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        text = document.text
        with children.file_of(document) as path:
            words = ["occupancy", path, "--target", ",".join(cards), "--json"]
            ended = await children.phobos(words, path, document)
        found: dict[str, list[Resources]] = {}
        if ended.code and not ended.output:
            self._missing = "NVRTC" in ended.errors
            self.server.log_to_client(ended.errors.strip())
        else:
            for row in json.loads(ended.output):
                if "refused" not in row:
                    keys = ("target", "ctas_per_sm", "limiter", "registers", "spilled_bytes", "shared_bytes")
                    found.setdefault(row["kernel"], []).append(Resources(*(row[key] for key in keys)))
        self._known[document.key] = ((text, cards), {kernel: tuple(rows) for kernel, rows in found.items()})
        if found and document.text is text and self.server.session.client.refreshes_lenses:
            self.server.protocol.send_request(types.WORKSPACE_CODE_LENS_REFRESH, None)

    def forget(self, key: str) -> None:
        self._known.pop(key, None)
        under_way = self._asking.pop(key, None)
        if under_way is not None:
            under_way[1].cancel()

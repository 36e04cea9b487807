"""Findings of files that are not open, for clients that do not pull: pushed as they come, cleared as they go.

A sweep looks at every file below the workspace's folders, in worker processes, and costs a `stat` for each that has
not changed since. What an open document says is the client's text's affair (`publishing.py`), never a sweep's.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from phobos.lsp import convert
from phobos.lsp.scanning import File, Scan
from phobos.lsp.session import Opened

if TYPE_CHECKING:
    from phobos.lsp.server import Server

SOON_SECONDS = 1.0  # between what makes a sweep needed and the sweep: several events make one


class Sweeper:
    def __init__(self, server: Server) -> None:
        self.server = server
        self._scan = Scan(server)
        self._told: dict[str, tuple[str, str]] = {}  # key of a file with findings to the URI and result they went under
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def soon(self) -> None:
        """Something may have changed on disk, or in what is asked of it."""
        if self.server.session.client.pulls or not (self.server.session.folders or self._told):
            return
        self._again = True
        if self._task is None or self._task.done():
            self._task = self.server.spawn(self._sweeps())

    def opened(self, document: Opened) -> None:
        """Its findings are the document's from now on, under the name the client gives it."""
        told = self._told.pop(document.key, None)
        if told is not None and told[0] != document.uri:
            self.server.publisher.send(told[0], [], None)

    async def _sweeps(self) -> None:
        while self._again:
            self._again = False
            await asyncio.sleep(SOON_SECONDS)
            await self._sweep()

    async def _sweep(self) -> None:
        session = self.server.session
        seen: set[str] = set()
        if session.settings.workspace:
            async with contextlib.aclosing(self._scan.files()) as files:
                async for file in files:
                    seen.add(file.document.key)
                    self._tell(file)
            if not self._scan.complete:
                return
        for key in self._told.keys() - seen:  # deleted, or no longer wanted
            uri, _ = self._told.pop(key)
            self.server.publisher.send(uri, [], None)

    def _tell(self, file: File) -> None:
        session, key = self.server.session, file.document.key
        told = self._told.get(key)
        if key in session.documents or (told is not None and told[1] == file.result_id):
            return
        if file.findings:
            uri = session.uri_for(file.path)
            self._told[key] = (uri, file.result_id)
            self.server.publisher.send(uri, convert.diagnostics(session, file.document, file.findings), None)
        elif told is not None:
            del self._told[key]
            self.server.publisher.send(told[0], [], None)

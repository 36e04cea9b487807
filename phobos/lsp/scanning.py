"""The findings of every file of the workspace, made in worker processes and kept by modification time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from lsprotocol import types

from phobos.diagnostic import Diagnostic
from phobos.lsp.session import Opened
from phobos.lsp.workers import JobFailed
from phobos.value import value

if TYPE_CHECKING:
    from phobos.lsp.server import Server

BATCH = 16  # files a job


@value
class File:
    path: str
    document: Opened
    result_id: str
    findings: tuple[Diagnostic, ...]


class Scan:
    """Keeps what it found, so that asking again costs a `stat` a file."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._kept: dict[str, tuple[object, File]] = {}
        self.complete = False  # whether the last look saw everything that is there

    async def files(self, token: int | str | None = None) -> AsyncGenerator[File, None]:
        """Every file on disk below the folders, as it comes. Ends early when the user cancels the progress."""
        self.complete = False
        session = self.server.session
        folders = list(session.folder_paths())
        if not folders:
            self.complete = True
            return
        try:
            there = await self.server.scanners.run("find", folders=folders)
        except JobFailed as error:
            self.server.log_to_client(str(error), types.MessageType.Error)
            return
        assert isinstance(there, list)
        settings = (session.settings.configuration, session.settings.cards)
        missing: list[str] = []
        stamps: dict[str, object] = {}
        rules: dict[str, str] = {}  # one look at the configuration files a directory
        for path, modified, size in there:
            folder = os.path.dirname(path)
            if folder not in rules:
                rules[folder] = session.configurations.rules(path, settings[0]).stamp
                await asyncio.sleep(0)
            stamp = (modified, size, rules[folder], settings)
            stamps[path] = stamp
            kept = self._kept.get(path)
            if kept is not None and kept[0] == stamp:
                yield kept[1]
            else:
                missing.append(path)
        for path in self._kept.keys() - stamps.keys():
            del self._kept[path]
        async with _Progress(self.server, token, len(missing)) as progress:
            jobs = [
                asyncio.ensure_future(
                    self.server.scanners.run(
                        "check_files", paths=missing[at : at + BATCH], override=settings[0], targets=settings[1]
                    )
                )
                for at in range(0, len(missing), BATCH)
            ]
            failed = False
            try:
                for job in asyncio.as_completed(jobs):
                    try:
                        found = await job
                    except JobFailed as error:
                        failed = True
                        self.server.log_to_client(str(error), types.MessageType.Error)
                        continue
                    assert isinstance(found, list)
                    for path, text, result, findings in found:
                        file = File(path, Opened(session.uri_for(path), text, None, False), result, findings)
                        self._kept[path] = (stamps[path], file)
                        yield file
                    progress.advance(BATCH)
                    if progress.cancelled:
                        return
                self.complete = not failed
            finally:
                for job in jobs:
                    job.cancel()


class _Progress:
    """A progress bar for a scan of any size worth one: the client's own token, or one that is asked for."""

    def __init__(self, server: Server, token: int | str | None, total: int) -> None:
        self.server = server
        self.token = token
        self.total = total
        self.done = 0
        self.shown = False

    async def __aenter__(self) -> _Progress:
        if self.total < 2 * BATCH:
            return self
        if self.token is None and self.server.session.client.progress:
            token = str(uuid.uuid4())
            with contextlib.suppress(Exception):  # a client that refuses gets none
                await self.server.work_done_progress.create_async(token)
                self.token = token
        if self.token is not None:
            begin = types.WorkDoneProgressBegin(title="Checking kernels", cancellable=True, percentage=0)
            self.server.work_done_progress.begin(self.token, begin)
            self.shown = True
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.shown and self.token is not None:
            self.server.work_done_progress.end(self.token, types.WorkDoneProgressEnd())
            self.server.work_done_progress.tokens.pop(self.token, None)

    @property
    def cancelled(self) -> bool:
        if not self.shown or self.token is None:
            return False
        future = self.server.work_done_progress.tokens.get(self.token)
        return future is not None and future.cancelled()

    def advance(self, files: int) -> None:
        self.done = min(self.done + files, self.total)
        if self.shown and self.token is not None:
            report = types.WorkDoneProgressReport(
                message=f"{self.done}/{self.total}", percentage=self.done * 100 // self.total, cancellable=True
            )
            self.server.work_done_progress.report(self.token, report)

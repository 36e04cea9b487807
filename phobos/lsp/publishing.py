"""When a document is checked and how its findings reach the client: pushed, or pulled, never both.

A client that pulls asks when it wants to; a change of configuration makes it ask again. To any other client the
findings are pushed: one task a document waits for a pause in typing, and the next edit cancels it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from lsprotocol import types

from phobos.ide.groundwork import groundwork
from phobos.lsp import convert
from phobos.lsp.checking import BadConfiguration
from phobos.lsp.session import BREATH_SECONDS, Opened
from phobos.lsp.uris import uri_of
from phobos.lsp.workers import JobFailed

if TYPE_CHECKING:
    from phobos.lsp.server import Server

log = logging.getLogger("phobos.lsp")

WATCH_SECONDS = 2.0
FIRST_SECONDS = 0.005  # after a key: what the editor asks at once is answered first
SWEEP_SECONDS = 10.0


class Publisher:
    def __init__(self, server: Server) -> None:
        self.server = server
        self._bad: dict[str, str] = {}  # configuration file to the complaint that was shown
        self._said_large: set[str] = set()

    # --- events -----------------------------------------------------------------------------------------

    def changed(self, document: Opened) -> None:
        """The text of an open document is new."""
        self._cancel(document)
        if document.is_large:
            self._say_large(document)
        else:
            delay = self.server.session.settings.debounce_ms / 1000
            pulls = self.server.session.client.pulls
            work = self._meanwhile(document, delay) if pulls else self._later(document, delay)
            document.task = self.server.spawn(work)

    def opened(self, document: Opened) -> None:
        self._cancel(document)
        self.server.sweeper.opened(document)
        if document.is_large:
            self._say_large(document)
            document.task = self.server.spawn(self._large(document))
        elif not self.server.session.client.pulls:
            document.task = self.server.spawn(self._later(document, 0))

    def saved(self, document: Opened) -> None:
        if document.is_large:
            self._cancel(document)
            document.task = self.server.spawn(self._large(document))
        elif self.server.session.settings.prove_on_save:
            if document.proving is not None:
                document.proving.cancel()
            document.proving = self.server.spawn(self._prove(document))

    def closed(self, document: Opened) -> None:
        self._cancel(document)
        if not self.server.session.client.pulls:
            self.send(document.uri, [], None)
        self.server.sweeper.soon()  # what stands on disk counts again

    def everything(self) -> None:
        """The configuration or the settings changed: all findings are made anew."""
        session = self.server.session
        for document in session.documents.values():
            self._complain(document)
            if document.is_large:
                self.opened(document)
            elif not session.client.pulls:
                self._cancel(document)
                document.task = self.server.spawn(self._later(document, 0))
        self.server.sweeper.soon()
        self.server.refresh()

    async def watch(self) -> None:
        """Look at the configuration files now and then: also those above its folders no client watches."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self.server.session.configurations.changed():
                self.everything()

    async def sweep(self) -> None:
        """For clients that watch no files: look at the kernels that are not open now and then."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.server.sweeper.soon()

    # --- findings ---------------------------------------------------------------------------------------

    def current(self, document: Opened) -> tuple[str, list[types.Diagnostic]]:
        """Result id and diagnostics of the newest text that is analysed (of a large document: as last saved)."""
        session = self.server.session
        if document.is_large:
            result, findings = document.large_verdict or ("", ())
        else:
            result, findings = session.findings(document)
        self._complain(document)
        sent = convert.diagnostics(session, document, findings)
        if document.is_large:
            sent.insert(0, _large_note())
        return result, sent

    async def _later(self, document: Opened, delay: float) -> None:
        await self._meanwhile(document, delay)
        await self.server.session.settle(document)
        self._publish(document)
        for _ in groundwork(self.server.session.analysed(document)):  # of what there was no time for
            await asyncio.sleep(BREATH_SECONDS)

    async def _meanwhile(self, document: Opened, delay: float) -> None:
        """Waits, and uses the time: what the next hover or completion will ask, be it before the findings or after."""
        loop = asyncio.get_running_loop()
        until = loop.time() + delay
        if delay:
            await asyncio.sleep(min(delay, FIRST_SECONDS))
            for _ in groundwork(self.server.session.analysed(document)):
                await asyncio.sleep(BREATH_SECONDS)
                if loop.time() >= until:
                    return
        await asyncio.sleep(until - loop.time())

    def _publish(self, document: Opened) -> None:
        if self.server.session.documents.get(document.key) is not document:
            return  # closed meanwhile
        _, diagnostics = self.current(document)
        self.send(document.uri, diagnostics, document.version)
        self.server.collector.rested()

    async def _large(self, document: Opened) -> None:
        """Check a large document in a worker; the conversation goes on meanwhile."""
        session = self.server.session
        rules = session.rules(document)
        result = session.result_id(document, rules)
        text = document.text
        try:
            found = await self.server.workers.run(
                "check", path=session.name_of(document), text=text, override=session.settings.configuration,
                targets=session.settings.cards,
            )  # fmt: skip
        except JobFailed as error:
            log.error("%s", error)
            return
        assert isinstance(found, tuple)
        if document.text is not text:
            return  # edited meanwhile: the next save asks again
        document.large_verdict = (result, found)
        self._show_anew(document)

    async def _prove(self, document: Opened) -> None:
        """`--prove`, in a process of its own; its findings replace the ordinary ones of the same text."""
        from phobos.lsp.proving import prove

        session = self.server.session
        result = session.result_id(document, session.rules(document))
        text = document.text
        found = await prove(session.name_of(document), text, document.lines, session.settings)
        if found is not None and document.text is text:
            document.proved = (result, found)
            self._show_anew(document)

    def _show_anew(self, document: Opened) -> None:
        """Findings came from elsewhere: push them, or have them pulled."""
        client = self.server.session.client
        if not client.pulls:
            self._publish(document)
        elif client.refreshes_diagnostics:
            self.server.protocol.send_request(types.WORKSPACE_DIAGNOSTIC_REFRESH, None)

    # --- sending ----------------------------------------------------------------------------------------

    def send(self, uri: str, diagnostics: list[types.Diagnostic], version: int | None) -> None:
        self.server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=version)
        )

    def _cancel(self, document: Opened) -> None:
        if document.task is not None:
            document.task.cancel()
            document.task = None

    def _say_large(self, document: Opened) -> None:
        if document.key not in self._said_large:
            self._said_large.add(document.key)
            self.server.show(f"{document.uri.rpartition('/')[2]}: {LARGE_MESSAGE}", types.MessageType.Warning)

    def _complain(self, document: Opened) -> None:
        """A configuration that cannot be used is said once, and stands in its own file until it is mended."""
        bad = self.server.session.bad_configuration(document)
        source = bad.path if bad is not None else None
        for path in [path for path in self._bad if path != source and not self._still_bad(path)]:
            del self._bad[path]
            self.send(uri_of(path), [], None)
        if bad is not None and self._bad.get(bad.path) != f"{bad.line}: {bad.message}":
            self._bad[bad.path] = f"{bad.line}: {bad.message}"
            self.server.show(f"{bad.path}:{bad.line + 1}: {bad.message}", types.MessageType.Error)
            self.send(uri_of(bad.path), [_bad_diagnostic(bad)], None)

    def _still_bad(self, path: str) -> bool:
        return any(
            (bad := self.server.session.bad_configuration(document)) is not None and bad.path == path
            for document in self.server.session.documents.values()
        )


LARGE_MESSAGE = "over 1 MB: analysed when it is saved, and only for findings"


def _large_note() -> types.Diagnostic:
    start = types.Position(0, 0)
    return types.Diagnostic(
        range=types.Range(start, start), message=f"this file is {LARGE_MESSAGE}",
        severity=types.DiagnosticSeverity.Information, source=convert.SOURCE,
    )  # fmt: skip


def _bad_diagnostic(bad: BadConfiguration) -> types.Diagnostic:
    return types.Diagnostic(
        range=types.Range(types.Position(bad.line, 0), types.Position(bad.line + 1, 0)),
        message=bad.message, severity=types.DiagnosticSeverity.Error, source=convert.SOURCE,
    )  # fmt: skip



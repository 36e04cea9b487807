"""One client's session: its documents as it last sent them, their analysis, its settings. Knows no request.

The texts are ours, not the library's: `change` applies edits in the negotiated encoding through our own
`LineIndex`, so that what an editor calls a line is what we call a line.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from lsprotocol import types

from phobos.check.configuration import Configuration
from phobos.diagnostic import Diagnostic
from phobos.errors import InputError
from phobos.files import contents
from phobos.ide.document import Document
from phobos.lsp import checking
from phobos.lsp.checking import BadConfiguration, Configurations, Rules
from phobos.lsp.client import Client, Settings, client_of
from phobos.lsp.uris import key_of, path_of, uri_of
from phobos.semantics.module import read
from phobos.syntax.lines import Encoding, LineIndex

log = logging.getLogger("phobos.lsp")

LARGE = 1_000_000  # code points; a larger document is analysed when it is saved, in a worker
TURN_SECONDS = 0.002  # what long work does at a time
BREATH_SECONDS = 0.0002  # and how long it then rests: a moment of sleep lets the thread in that reads messages
KEPT_FILES = 16  # documents that are not open, kept for requests about them


class Opened:
    """A document: open in the client, or read from disk for a request. Everything is of its newest text."""

    def __init__(self, uri: str, text: str, version: int | None, is_open: bool) -> None:
        self.uri = uri
        self.key = key_of(uri)
        self.path = path_of(uri)
        self.text = text
        self.version = version
        self.is_open = is_open
        self.task: asyncio.Task[None] | None = None  # the debounced check
        self.proving: asyncio.Task[None] | None = None
        self.proved: tuple[str, tuple[Diagnostic, ...]] | None = None  # result id it was made from, findings
        self.large_verdict: tuple[str, tuple[Diagnostic, ...]] | None = None  # result id, findings at the last save
        self.tokens: tuple[str, list[int]] | None = None  # result id and data last sent
        self._lines: LineIndex | None = None
        self._verdict: tuple[str, tuple[Diagnostic, ...]] | None = None
        self._document: tuple[str, Document] | None = None  # stamp of the rules

    @property
    def lines(self) -> LineIndex:
        if self._lines is None:
            self._lines = LineIndex(self.text)
        return self._lines

    @property
    def is_large(self) -> bool:
        return len(self.text) > LARGE

    def replace_text(self, text: str, version: int | None) -> None:
        self.text = text
        self.version = version
        self._lines = None
        self._verdict = None
        self._document = None

    def change(self, changes: Sequence[types.TextDocumentContentChangeEvent], encoding: Encoding) -> None:
        """Apply edits in order; a range that lies outside the text means its nearest place inside."""
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                lines = self.lines
                start = lines.offset(change.range.start.line, change.range.start.character, encoding)
                end = lines.offset(change.range.end.line, change.range.end.character, encoding)
                self._lines = lines.edited(min(start, end), max(start, end), change.text)
                self.text = self._lines.text
            else:
                self.text = change.text
                self._lines = None
        self._verdict = None
        self._document = None


class Session:
    """What the server knows of its client. `client` and `settings` are set by `initialize`."""

    def __init__(self) -> None:
        self.client: Client = client_of(types.ClientCapabilities())
        self.settings = Settings()
        self.encoding: Encoding = "utf-16"
        self.folders: dict[str, str] = {}  # key to URI
        self.documents: dict[str, Opened] = {}
        self.configurations = Configurations()
        self._files: OrderedDict[str, tuple[tuple[int, int], Opened]] = OrderedDict()

    # --- documents ------------------------------------------------------------------------------------

    def open(self, uri: str, text: str, version: int | None) -> Opened:
        known = self.documents.get(key_of(uri))
        if known is not None:  # opened twice: the newest text counts
            known.replace_text(text, version)
            known.uri = uri
            return known
        document = Opened(uri, text, version, True)
        self.documents[document.key] = document
        return document

    def close(self, uri: str) -> Opened | None:
        return self.documents.pop(key_of(uri), None)

    def document(self, uri: str) -> Opened | None:
        """The document as the client has it, else as it stands on disk; None where there is none."""
        key = key_of(uri)
        known = self.documents.get(key)
        return known if known is not None else self._from_disk(key, uri)

    @staticmethod
    def document_key(uri: str) -> str:
        return key_of(uri)

    def ready(self, uri: str) -> Opened | None:
        """The document, if requests about its contents are answered: not where there is none or it is large."""
        document = self.document(uri)
        return None if document is None or document.is_large else document

    def _from_disk(self, key: str, uri: str) -> Opened | None:
        path = path_of(uri)
        if path is None or not path.endswith(".ph"):
            return None
        try:
            status = os.stat(path)
            stamp = (status.st_mtime_ns, status.st_size)
            kept = self._files.get(key)
            if kept is not None and kept[0] == stamp:
                self._files.move_to_end(key)
                return kept[1]
            if not stat.S_ISREG(status.st_mode):  # reading a pipe may never end
                return None
            text = contents(path).decode("utf-8-sig")
        except (OSError, ValueError, InputError):
            self._files.pop(key, None)
            return None
        document = Opened(uri, text, None, False)
        self._files[key] = (stamp, document)
        while len(self._files) > KEPT_FILES:
            self._files.popitem(last=False)
        return document

    # --- what is known of a document --------------------------------------------------------------------

    def name_of(self, document: Opened) -> str:
        """The name under which a document is checked. One without a file lies, as it were, in the first folder."""
        if document.path is not None:
            return document.path
        base = document.uri.rpartition("/")[2].rpartition(":")[2] or "untitled"
        for uri in self.folders.values():
            folder = path_of(uri)
            if folder is not None:
                return os.path.join(folder, base)
        return os.path.join(os.getcwd(), base)

    def rules(self, document: Opened) -> Rules:
        return self.configurations.rules(self.name_of(document), self.settings.configuration)

    def configuration(self, document: Opened) -> Configuration:
        return self.rules(document).configuration

    def result_id(self, document: Opened, rules: Rules) -> str:
        return checking.result_id(document.text, rules, repr(self.settings.cards))

    def findings(self, document: Opened) -> tuple[str, tuple[Diagnostic, ...]]:
        """The result id and findings of the newest text, the unsaved included. Kept until either changes."""
        rules = self.rules(document)
        result = self.result_id(document, rules)
        if document._verdict is None or document._verdict[0] != result:
            found = checking.check_module(self.analysed(document).module, rules, self.settings.cards)
            document._verdict = (result, found)
        if document.proved is not None and document.proved[0] == result:
            return f"{result}-proved", document.proved[1]
        return document._verdict

    async def settle(self, document: Opened) -> None:
        """Make the findings of the newest text without keeping anybody waiting: other messages come in between.

        An edit on the way starts it anew, so that what follows speaks of the text as it is then.
        """
        while not document.is_large:
            text = document.text
            rules = self.rules(document)
            if document._verdict is not None and document._verdict[0] == self.result_id(document, rules):
                return
            module = self.analysed(document).module
            began = 0.0
            for _ in checking.steps(module, rules, self.settings.cards):
                if time.perf_counter() - began > TURN_SECONDS:
                    await asyncio.sleep(BREATH_SECONDS)
                    began = time.perf_counter()
                if document.text is not text:
                    break
            else:
                self.findings(document)
                return

    def bad_configuration(self, document: Opened) -> BadConfiguration | None:
        return self.rules(document).bad

    def analysed(self, document: Opened) -> Document:
        """The document as `phobos.ide` takes it, without findings, which few answers need.

        It is parsed; what an answer asks of a kernel is worked out when it asks.
        """
        rules = self.rules(document)
        known = document._document
        if known is None or known[0] != rules.stamp:
            name = self.name_of(document)
            module = read(name, document.text, rules.settings)
            known = document._document = (rules.stamp, Document(name, document.text, module, document.lines))
        return known[1]

    def judged(self, document: Opened) -> Document:
        """The same with its findings."""
        found = self.findings(document)[1]
        known = self.analysed(document)
        return Document(known.path, known.text, known.module, known.lines, found)

    def folder_paths(self) -> Iterator[str]:
        for uri in self.folders.values():
            path = path_of(uri)
            if path is not None and os.path.isdir(path):
                yield path

    def uri_for(self, path: str) -> str:
        """The URI of a file: as the client spells it where it is open, so that both mean one document."""
        uri = uri_of(path)
        known = self.documents.get(key_of(uri))
        return known.uri if known is not None else uri

"""Conversations with the server, in this process: what clients say, and what no client should.

Bytes go in by its own framing and come out of it. Every request has exactly one answer, whatever it asks; what the
client sent meanwhile, the server goes on, and its documents hold what the edits make of them; a fresh server that is
given the last texts answers the same.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import random
from collections import Counter
from functools import cache
from typing import Any
from unittest import mock

from lsprotocol import converters

from phobos.lsp.serve import converse as serve
from phobos.lsp.server import Server, create
from phobos.lsp.uris import key_of
from phobos.syntax.lines import Encoding, LineIndex
from tests.lsp.editors import plain

SECONDS = 20.0  # without an answer
INTERNAL_ERROR = -32603
KINDS = ("vscode", "pushed", "counting", "bare")
URIS = (
    "file:///code/r/a.ph", "file:///code/r/b.ph", "file:///c%3A/r/b.ph", "file:///C:/r/b.ph", "untitled:Untitled-1",
    "file:///c:\\r\\b.ph", "vscode-remote://ssh/r/a.ph", "file://server/share/a.ph", "a.ph", "", "file:///%00/a.ph",
    "file:///code/r/%ff%fe.ph", "http://[::1", "file:///" + "d/" * 300 + "a.ph", "git:/code/a.ph?{}", "file:///",
)  # fmt: skip
ASKED = tuple(
    f"textDocument/{name}"
    for name in (
        "hover", "completion", "signatureHelp", "definition", "typeDefinition", "references", "documentHighlight",
        "documentSymbol", "codeAction", "codeLens", "documentLink", "formatting", "rangeFormatting",
        "onTypeFormatting", "rename", "prepareRename", "foldingRange", "selectionRange", "semanticTokens/full",
        "semanticTokens/full/delta", "semanticTokens/range", "inlayHint", "diagnostic", "prepareCallHierarchy",
    )
)  # fmt: skip
OTHER = (
    "workspace/symbol", "workspace/diagnostic", "workspace/executeCommand", "callHierarchy/incomingCalls",
    "callHierarchy/outgoingCalls", "completionItem/resolve", "codeAction/resolve", "initialize", "shutdown2", "", "$/x",
    "textDocument/willSaveWaitUntil", "window/workDoneProgress/cancel", "textDocument/moniker", "exit/",
)  # fmt: skip
TOLD = (
    "textDocument/didSave", "textDocument/willSave", "workspace/didChangeConfiguration", "$/setTrace", "$/unknown",
    "workspace/didChangeWatchedFiles", "workspace/didChangeWorkspaceFolders", "window/workDoneProgress/cancel",
    "initialized", "telemetry/event",
)  # fmt: skip
COMMANDS = (
    ("phobos.explainRule", ["PH203"]),
    ("phobos.chooseCards", ["a100"]),
    ("phobos.chooseCards", [[]]),
    ("x", []),
)
ODD = (
    None, True, 0, -1, 2**31, 2**63, 10**30, 0.5, "", "x", "\ud800", [], {}, [[]], {"uri": None}, [None] * 3, 1e308,
    {"jsonrpc": "2.0", "id": 1, "method": "shutdown"},
)  # fmt: skip
BODIES = (
    b"", b"{", b"[]", b"null", b"17", b'"x"', b"\xff\xfe\x00", b"[" * 5_000, b'{"jsonrpc": "2.0"}',
    b'{"id": 1, "result": {}}',
    b'{"jsonrpc": "1.0", "method": "x"}', b'{"jsonrpc": "2.0", "id": null, "method": "shutdown"}',
    b'{"jsonrpc": "2.0", "id": [1], "method": "x"}', b'{"jsonrpc": "2.0", "id": {"a": 1}, "result": 1}',
    b'{"jsonrpc": "2.0", "method": 5}', b'{"jsonrpc": "2.0", "id": 99999, "result": null}',
    b'{"jsonrpc": "2.0", "id": 99999, "error": 5}', '{"jsonrpc": "2.0", "method": "ü"}'.encode("utf-16"),
    b'{"jsonrpc": "2.0", "id": 1' + b"0" * 6_000 + b', "method": "x"}', b'[{"jsonrpc": "2.0", "method": "x"}]',
    b'{"jsonrpc": "2.0", "id": "s", "result": {}, "error": {}}',
)  # fmt: skip
GARBAGE = (
    b"\r\n", b"Content-Length: x\r\n\r\n{}", b"content-type: a\r\n\r\n", b"Content-Length: -5\r\n\r\n",
    b"Content-Length: 99999999999999999999\r\n\r\n{}", b"\xff\xff\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"Content-Length: 4\r\nContent-Length: 2\r\n\r\n[]", b"Content-Length: 2\n\n[]", b"{}",
    b"CONTENT-LENGTH:2\r\nContent-Type: x; charset=utf-16\r\n\r\n[]",
)  # fmt: skip


_converter = cache(converters.get_converter)


@cache
def _capabilities(kind: str) -> dict[str, Any]:
    """Of VS Code, of one to which findings are pushed and which counts otherwise, and of one that can do nothing."""
    if kind == "bare":
        return {}
    found = plain("vscode")
    if kind != "vscode":
        del found["textDocument"]["diagnostic"]
        found["general"]["positionEncodings"] = ["utf-8" if kind == "pushed" else "utf-32"]
    return found


class Lost(AssertionError):
    """A request without an answer, or with two; a server that is no longer what it should be."""


class Talk:
    """A server in this process, the client's side of its stream, and what every document must hold."""

    def __init__(self, rng: random.Random, editor: str) -> None:
        self.rng = rng
        with mock.patch.object(converters, "get_converter", _converter):  # making one takes longer than a talk
            self.server: Server = create()
        self.server.protocol.set_writer(self)  # type: ignore[arg-type]
        self.reader = asyncio.StreamReader(limit=2**20)
        self.life = asyncio.ensure_future(serve(self.server, self.reader))
        self.encoding: Encoding = "utf-16"
        self.capabilities = _capabilities(editor)
        self.texts: dict[str, str] = {}
        self.answers: dict[Any, Any] = {}
        self.counts: Counter[Any] = Counter()
        self.asked: Counter[Any] = Counter()
        self.answered = asyncio.Event()
        self.broken: list[str] = []
        self._out = b""
        self._last = 0
        asyncio.get_running_loop().set_exception_handler(self._loop_failed)

    def _loop_failed(self, loop: object, context: dict[str, Any]) -> None:
        """What was raised where nobody waits for it."""
        error = context.get("exception")
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self.broken.append(f"{context['message']}: {type(error).__name__}: {error}")

    # --- the stream -------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """What the server sends."""
        self._out += data
        while b"\r\n\r\n" in self._out:
            header, _, rest = self._out.partition(b"\r\n\r\n")
            length = int(header.split(b"Content-Length: ")[1].split(b"\r\n")[0])
            if len(rest) < length:
                return
            self._out = rest[length:]
            try:
                self._take(json.loads(rest[:length]))
            except Exception as error:
                self.broken.append(f"the server sent {rest[:200]!r}: {error!r}")

    def close(self) -> None:
        """As a writer must be able to."""

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            number = message["id"]
            self.counts[number] += 1
            self.answers[number] = message
            self.answered.set()
        elif "id" in message:
            reply: dict[str, Any] = {"result": self.rng.choice((None, None, [{}], [None], *ODD))}
            if self.rng.random() < 0.2:
                reply = {"error": {"code": -32803, "message": "no"}}
            if self.rng.random() < 0.9:
                self.say({"id": message["id"], **reply})

    def say(self, message: dict[str, Any]) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send(self, body: bytes) -> None:
        self.reader.feed_data(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def ask(self, method: str, params: Any, number: Any = None) -> Any:
        if number is None:
            self._last += 1
            number = self._last
        self.asked[number] += 1
        self.say({"id": number, "method": method, "params": params})
        return number

    async def settle(self) -> None:
        """Until every request has an answer. Raises Lost."""
        ends = asyncio.get_running_loop().time() + SECONDS
        while any(self.counts[number] < times for number, times in self.asked.items()):
            self.answered.clear()
            if self.life.done():
                self.life.result()
                raise Lost("the server has ended")
            left = ends - asyncio.get_running_loop().time()
            if left <= 0:
                number = next(n for n, times in self.asked.items() if self.counts[n] < times)
                raise Lost(f"request {number!r} has no answer")
            await asyncio.wait({asyncio.ensure_future(self.answered.wait()), self.life}, timeout=min(left, 1),
                               return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        for number, times in self.counts.items():
            if number is not None and times != self.asked[number]:
                raise Lost(f"request {number!r} has {times} answers, asked {self.asked[number]} times")
        for number, answer in self.answers.items():
            if answer.get("error", {}).get("code") == INTERNAL_ERROR:
                raise Lost(f"request {number!r}: {answer['error']['message']}")
        if self.broken:
            raise Lost(self.broken[0])

    # --- what is said -----------------------------------------------------------------------------------

    def start(self) -> None:
        offered = self.capabilities.get("general", {}).get("positionEncodings", ["utf-16"])
        self.encoding = next((one for one in offered if one in ("utf-8", "utf-16", "utf-32")), "utf-16")
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": self.capabilities})
        self.say({"method": "initialized", "params": {}})

    def step(self, text: str) -> None:
        """One message, or some that belong together."""
        rng, uri = self.rng, self.rng.choice(URIS[: 5 if self.rng.random() < 0.8 else len(URIS)])
        match rng.randrange(20):
            case 0 | 1:
                self.open(uri, text if rng.random() < 0.7 else text[: rng.randrange(len(text) + 1)])
            case 2 | 3 | 4 | 5:
                self.change(uri)
            case 6:
                self.texts.pop(key_of(uri), None)
                self.say({"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})
            case 7 | 8 | 9 | 10 | 11:
                self.ask(rng.choice(ASKED), self.params(uri))
            case 12:
                method = rng.choice(OTHER)
                command, arguments = rng.choice(COMMANDS)
                params = {"query": "k", "previousResultIds": [], "command": command, "arguments": arguments}
                self.ask(method, rng.choice((params, params, {}, *ODD)))
            case 13:
                self.ask(rng.choice((*ASKED, *OTHER[:7])), self.spoilt(self.params(uri)))
            case 14:
                params = rng.choice(({"textDocument": {"uri": uri}}, {"settings": {"phobos": {"target": 5}}}, *ODD))
                self.say({"method": rng.choice(TOLD), "params": params})
            case 15:
                number = rng.choice((self._last, self._last, self._last + 5, "x", None, 2**40, [], {}))
                self.say({"method": "$/cancelRequest", "params": {"id": number}})
            case 16:
                self.send(rng.choice(BODIES))
            case 17:
                self.reader.feed_data(rng.choice(GARBAGE))
            case 18:
                number = rng.choice((2**31, 2**53 + 1, 10**25, -7, "an id", "\ud800", "", "0" * 3_000))
                self.ask(rng.choice(ASKED), self.params(uri), number)
            case _:
                method = rng.choice(("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"))
                self.say({"method": method, "params": rng.choice(ODD)})

    def open(self, uri: str, text: str) -> None:
        self.texts[key_of(uri)] = text
        document = {"uri": uri, "languageId": "phobos", "version": self.rng.randrange(9), "text": text}
        self.say({"method": "textDocument/didOpen", "params": {"textDocument": document}})

    def change(self, uri: str) -> None:
        rng = self.rng
        text = self.texts.get(key_of(uri), "")
        changes = []
        for _ in range(rng.choice((1, 1, 2, 5))):
            new = rng.choice(("", "x", "}", "\n", "\r", "𝛼", "let y = 1\n", "\ud800", "(", "@persistent\n", "ß" * 40))
            if rng.random() < 0.05:
                text = new
                changes.append({"text": new})
                continue
            lines = LineIndex(text)
            start, end = self.place(text), self.place(text)
            changes.append({"range": {"start": start, "end": end}, "text": new})
            first, last = (lines.offset(p["line"], p["character"], self.encoding) for p in (start, end))
            first, last = min(first, last), max(first, last)
            text = text[:first] + new + text[last:]
        self.texts[key_of(uri)] = text
        params = {"textDocument": {"uri": uri, "version": rng.randrange(9)}, "contentChanges": changes}
        self.say({"method": "textDocument/didChange", "params": params})

    def place(self, text: str) -> dict[str, int]:
        """A position, mostly in the text or near its ends, now and then far outside."""
        rng = self.rng
        lines = text.count("\n") + 1
        line = rng.choice((rng.randrange(lines), rng.randrange(lines), 0, lines, lines + 7, 2**31 - 1))
        return {"line": line, "character": rng.choice((rng.randrange(40), rng.randrange(40), 0, 400, 2**31 - 1))}

    def params(self, uri: str) -> dict[str, Any]:
        """What any request about a document may need."""
        text = self.texts.get(key_of(uri), "")
        start, end = self.place(text), self.place(text)
        return {
            "textDocument": {"uri": uri}, "position": start, "range": {"start": start, "end": end},
            "positions": [start, end], "newName": self.rng.choice(("renamed", "let", "", "1", "ü")), "ch": "}",
            "options": {"tabSize": self.rng.choice((0, 2, 2**31 - 1)), "insertSpaces": True},
            "context": {"diagnostics": [], "includeDeclaration": True, "triggerKind": 1},
            "previousResultId": self.rng.choice(("", "1", "x")),
        }  # fmt: skip

    def spoilt(self, params: dict[str, Any]) -> Any:
        rng = self.rng
        key = rng.choice(list(params))
        match rng.randrange(4):
            case 0:
                return rng.choice(ODD)
            case 1:
                del params[key]
            case 2:
                params[key] = rng.choice(ODD)
            case _:
                inner = params["range"]["start"] = dict(params["range"]["start"])
                inner[rng.choice(("line", "character"))] = rng.choice(ODD)
        return params

    async def end(self) -> None:
        """`shutdown`, a request too late, `exit`."""
        self.ask("shutdown", None)
        self.ask(self.rng.choice(ASKED), self.params(URIS[0]))
        await self.settle()
        self.say({"method": "exit"})
        if not await asyncio.wait_for(self.life, SECONDS):
            raise Lost("`exit` did not end the conversation")

    async def cut(self) -> None:
        """The stream ends, in the middle of a message or between two."""
        self.reader.feed_data(self.rng.choice((b"", b"Content-Length: 50\r\n\r\n{", b"Content-Len")))
        self.reader.feed_eof()
        await asyncio.wait_for(self.life, SECONDS)


def converse(text: str, rng: random.Random) -> int:
    """A conversation about `text`; how many messages were sent. Raises Lost, and whatever the server raises."""
    for name in ("phobos.lsp", "pygls"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    before = gc.get_threshold()
    try:
        return asyncio.run(_conversation(text, rng))
    finally:  # a server has its process to itself, and sets aside all that is there (`lsp.collecting`)
        gc.set_threshold(*before)
        gc.unfreeze()


async def _conversation(text: str, rng: random.Random) -> int:
    talk = Talk(rng, rng.choice(KINDS))
    try:
        if rng.random() < 0.1:
            for _ in range(3):
                talk.ask(rng.choice(ASKED), talk.params(URIS[0]))
                talk.send(rng.choice(BODIES))
        talk.start()
        await talk.settle()
        talk.open(URIS[0], text)
        for _ in range(rng.choice((2, 5, 10, 20))):
            talk.step(text)
            if rng.random() < 0.3:
                await asyncio.sleep(0)
        await talk.settle()
        talk.texts = {key: held for key, held in talk.texts.items() if key in talk.server.session.documents}
        if not talk.texts:
            talk.open(URIS[0], text)
        await _compare(talk)
        await (talk.end() if rng.random() < 0.7 else talk.cut())
    finally:
        if not talk.life.done():
            talk.life.cancel()
        await talk.server.close()
        talk.server.thread_pool.shutdown(wait=False)
    return talk._last


async def _compare(talk: Talk) -> None:
    """The texts are those that the edits make; a fresh server says the same of one of them."""
    talk.ask("workspace/symbol", {"query": "k"})
    await talk.settle()
    for key, text in talk.texts.items():
        held = talk.server.session.documents.get(key)
        if held is None or held.text != text:
            raise Lost(f"{key} holds another text than its edits make")
    if talk.rng.random() < 0.75 or talk.server.session.settings.cards:
        return
    key = talk.rng.choice(sorted(talk.texts))
    uri = talk.server.session.documents[key].uri
    fresh = Talk(random.Random(0), "vscode")
    fresh.capabilities = talk.capabilities
    try:
        fresh.start()
        fresh.open(uri, talk.texts[key])
        for method in _COMPARED:
            one, other = (each.ask(method, {"textDocument": {"uri": uri}}) for each in (talk, fresh))
            await talk.settle()
            await fresh.settle()
            if _plain(talk.answers[one]) != _plain(fresh.answers[other]):
                raise Lost(f"{method} of {uri} is not what a fresh server says")
        await fresh.end()
    finally:
        await fresh.server.close()
        fresh.server.thread_pool.shutdown(wait=False)


_COMPARED = ("textDocument/documentSymbol", "textDocument/foldingRange", "textDocument/semanticTokens/full")


def _plain(answer: dict[str, Any]) -> str:
    """An answer without what counts requests."""
    found = answer.get("result")
    if isinstance(found, dict):
        found = {key: value for key, value in found.items() if key != "resultId"}
    return json.dumps([found, answer.get("error")], sort_keys=True)

"""What is no message, and what is no frame: it costs itself, and the conversation goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from phobos.lsp.framing import MOST_BYTES, bodies
from tests.lsp.wire import Wire


def cut(stream: bytes) -> list[bytes]:
    async def all_of() -> list[bytes]:
        reader = asyncio.StreamReader(limit=4096)
        reader.feed_data(stream)
        reader.feed_eof()
        return [body async for body in bodies(reader)]

    return asyncio.run(all_of())


GOOD = b"Content-Length: 2\r\n\r\n[]"


NO_FRAMES = [
    b"",
    b"\r\n\r\n",
    b"Content-Length: x\r\n\r\n{}",
    b"Content-Length: -5\r\n\r\n",
    b"Content-Length: %d\r\n\r\n{}" % (MOST_BYTES + 1),
    b"Content-Length: 99999999999999999999999\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\xff\xfe\x00",
    b"{}",
    b"x" * 10_000 + b"\r\n",
    b"Content-Length: 77\r\n",  # the one that stands last counts
]


@pytest.mark.parametrize("before", NO_FRAMES)
def test_what_is_no_frame_costs_itself(before: bytes) -> None:
    assert cut(before + GOOD + GOOD) == [b"[]", b"[]"]


@pytest.mark.parametrize("header", [b"content-length:2\r\n", b"Content-Length: 2\r\nContent-Type: x\r\n"])
def test_a_header_is_read_as_headers_are(header: bytes) -> None:
    assert cut(header + b"\r\n[]" + GOOD) == [b"[]", b"[]"]


@pytest.mark.parametrize("end", [b"Content-Len", b"Content-Length: 9\r\n", b"Content-Length: 9\r\n\r\n[]"])
def test_a_stream_that_ends_inside_a_frame_has_no_more_messages(end: bytes) -> None:
    assert cut(GOOD + end) == [b"[]"]


REFUSED: list[tuple[bytes, int | None, int]] = [
    (b"{", None, -32700),
    (b"", None, -32700),
    (b"\xff\xfe\x00", None, -32700),
    (b"[" * 50_000, None, -32700),
    (b"[]", None, -32600),
    (b'{"jsonrpc": "1.0", "id": 7, "method": "shutdown"}', 7, -32600),
    (b'{"id": 7, "method": "shutdown"}', 7, -32600),
    (b'{"jsonrpc": "2.0", "id": 7, "method": 5}', 7, -32600),
    (b'{"jsonrpc": "2.0", "id": [1], "method": "shutdown"}', None, -32600),
    (b'{"jsonrpc": "2.0", "id": true, "method": "shutdown"}', None, -32600),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "x", "params": {}, "error": {}}', 7, -32601),
]


def test_a_message_that_is_none_is_refused_and_the_next_is_answered(start: Callable[..., Wire]) -> None:
    wire = start()
    wire.start()
    assert wire.process.stdin is not None
    for at, (body, number, code) in enumerate(REFUSED):
        wire.process.stdin.write(NO_FRAMES[at % len(NO_FRAMES)])
        wire.send(body)
        assert wire.request("workspace/symbol", {"query": ""}) == []
        refused: dict[str, Any] = wire._replies.pop(number)  # type: ignore[arg-type]
        assert refused["error"]["code"] == code, body
        wire._id += 10  # no id of its own is one of those above
    assert wire.stop() == 0


def test_a_message_inside_another_is_data(start: Callable[..., Wire]) -> None:
    """The library made messages of every object that says "jsonrpc", at any depth, and lost the one around it."""
    wire = start()
    wire.start()
    inner = {"jsonrpc": "2.0", "id": 1, "method": "shutdown"}
    wire.notify("workspace/didChangeConfiguration", {"settings": {"phobos": inner}})
    wire.send({"id": "s", "method": "workspace/symbol", "params": {"query": "", "x": inner}})
    assert wire.reply("s") == []  # type: ignore[arg-type]
    assert wire.stop() == 0

"""Bytes to messages: the bodies that a client sends, cut at their headers. Knows nothing of what they say.

A header that is none, or a length that nobody can mean, costs what it introduces and no more: the next
`Content-Length` that ends a line begins anew, even where it is glued to what nobody understood.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable
from typing import Protocol

MOST_BYTES = 1 << 30  # of a body; more is no message but a mistake
_LENGTH = re.compile(rb"content-length:[ \t]*(\d{1,20})[ \t]*\r?\n\Z", re.IGNORECASE)


class Reader(Protocol):
    def readline(self) -> Awaitable[bytes]: ...

    def readexactly(self, n: int, /) -> Awaitable[bytes]: ...


async def bodies(reader: Reader) -> AsyncIterator[bytes]:
    """Every body until the stream ends; one that it ends in is none."""
    length: int | None = None
    while True:
        try:
            line = await reader.readline()
        except ValueError:  # a line longer than the stream keeps: no header
            continue
        if not line:
            return
        header = _LENGTH.search(line)
        if header is not None:
            length = int(header[1])
            if length > MOST_BYTES:
                length = None
        elif length is not None and not line.strip():
            try:
                body = await reader.readexactly(length)
            except asyncio.IncompleteReadError:
                return
            if len(body) < length:
                return
            length = None
            yield body

"""Running the server on a transport: standard input and output, or one TCP client. Knows logging and exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import sys
import threading

from pygls.io_ import StdoutWriter

from phobos.lsp.framing import Reader, bodies
from phobos.lsp.server import Server, create

log = logging.getLogger("phobos.lsp")

LONGEST_LINE = 1 << 16  # bytes of a header; bodies have no limit here


def serve(address: tuple[str, int] | None, log_file: str | None, verbose: bool) -> int:
    """Serve one client until it leaves: 0 after `shutdown` and `exit`, 1 when it just went, 2 if none could come."""
    try:
        _logging(log_file, verbose)
    except OSError as error:
        print(f"phobos lsp: cannot write the log file {log_file}: {error.strerror or error}", file=sys.stderr)
        return 2
    server = create()
    server.collector.start()
    try:
        asyncio.run(_stdio(server) if address is None else _tcp(server, *address))
    except (KeyboardInterrupt, BrokenPipeError):
        return 1
    except _CannotListen as error:
        print(f"phobos lsp: {error}", file=sys.stderr)
        return 2
    finally:
        server.workers_down()
    return 0 if server.ended_in_order else 1


class _CannotListen(Exception):
    pass


async def _stdio(server: Server) -> None:
    # Messages travel on copies of the descriptors: what prints by mistake goes to the log (stderr), not to the wire.
    reading = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    writing = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    server.protocol.set_writer(StdoutWriter(writing))
    if await converse(server, _read_by_thread(reading)):
        _leave(server)


def _read_by_thread(source: io.RawIOBase) -> asyncio.StreamReader:
    """What comes from a file that may be no pipe, by one thread that does nothing else: a message costs one switch.

    (The library hands each line of each message to a pool.)
    """
    loop = asyncio.get_running_loop()
    stream = asyncio.StreamReader(limit=LONGEST_LINE)

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed: nobody listens any more
            with contextlib.suppress(OSError):  # the editor's end broke, which is an end
                while data := source.read(1 << 16):
                    loop.call_soon_threadsafe(stream.feed_data, data)
            loop.call_soon_threadsafe(stream.feed_eof)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    return stream


async def _tcp(server: Server, host: str, port: int) -> None:
    gone = asyncio.Event()
    taken = False

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        if taken:  # one client a server: its documents are the client's
            writer.close()
            return
        taken = True
        server.protocol.set_writer(writer)
        try:
            if await converse(server, reader):
                _leave(server)
        except ConnectionError:
            log.info("the client dropped the connection")
        finally:
            writer.close()
            gone.set()

    try:
        listening = await asyncio.start_server(connected, host, port)
    except OSError as error:
        raise _CannotListen(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    bound = listening.sockets[0].getsockname()
    print(f"phobos lsp: waiting for a client on {bound[0]}:{bound[1]}", file=sys.stderr, flush=True)
    async with listening:
        await gone.wait()


async def converse(server: Server, reader: Reader) -> bool:
    """Handle messages until the client says `exit` (True) or its stream ends."""
    loop = asyncio.get_running_loop()
    server.left = asyncio.Event()
    talking = loop.create_task(_listen(server, reader))
    leaving = loop.create_task(server.left.wait())
    done, _ = await asyncio.wait({talking, leaving}, return_when=asyncio.FIRST_COMPLETED)
    server.stop.set()
    await server.close()
    for task in (talking, leaving):
        if task not in done:
            task.cancel()
    if talking in done and not talking.cancelled() and talking.exception() is not None:
        raise talking.exception()  # type: ignore[misc]
    return leaving in done


async def _listen(server: Server, reader: Reader) -> None:
    async for body in bodies(reader):
        server.protocol.receive(body)
        if server.stop.is_set():
            return


def _leave(server: Server) -> None:
    """After `exit` a thread may still wait for standard input, which nobody can interrupt: end the process."""
    server.workers_down()
    logging.shutdown()
    sys.stderr.flush()
    os._exit(0 if server.ended_in_order else 1)


def _logging(log_file: str | None, verbose: bool) -> None:
    handler: logging.Handler
    if log_file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        handler = logging.FileHandler(log_file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    log.setLevel(logging.DEBUG if verbose else logging.INFO if log_file else logging.WARNING)
    # pygls logs every message it sends in full at INFO.
    logging.getLogger("pygls").setLevel(logging.WARNING if verbose else logging.CRITICAL)  # `Server` says the rest

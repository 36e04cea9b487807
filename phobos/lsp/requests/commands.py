"""`workspace/executeCommand`: show what a kernel compiles to, run it, choose cards, explain a rule, start afresh.

A command answers with what it made, for a client that shows it in its own way, and otherwise shows it itself: as a
document where the client can open one, as a message where it cannot. Compiling and running happen in child processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from phobos.lsp import children
from phobos.lsp.requests.rename import REQUEST_FAILED
from phobos.lsp.server import Server
from phobos.lsp.session import Opened
from phobos.lsp.uris import uri_of
from phobos.lsp.workers import JobFailed
from phobos.value import replace

log = logging.getLogger("phobos.lsp")

SHOW = {"phobos.showCuda": ("cuda", "cu"), "phobos.showPtx": ("ptx", "ptx"), "phobos.showFacts": ("facts", "txt")}
RUN = "phobos.runKernel"
HAPPEN = "phobos.showItHappen"
CARDS = "phobos.chooseCards"
EXPLAIN = "phobos.explainRule"
RESTART = "phobos.restart"
DETECT = "races,deadlock,uninitialised,bounds"


def register(server: Server) -> None:
    session = server.session

    for command in SHOW:
        _register_show(server, command)

    async def run(uri: str, kernel: str) -> dict[str, Any]:
        return await _run(server, uri, kernel, [])

    async def happen(uri: str, kernel: str, code: str) -> dict[str, Any]:
        return await _run(server, uri, kernel, ["--device", "cpu", "--detect", DETECT, "--scheduler", "adversarial"])

    def cards(*names: Any) -> dict[str, Any]:
        """With names: lenses and findings speak of these cards. Without: what there is to choose from."""
        from phobos.codegen.cards import CARDS as KNOWN

        chosen = names[0] if names and isinstance(names[0], list) else list(names)
        if chosen:
            unknown = [name for name in chosen if not isinstance(name, str) or name not in KNOWN]
            if unknown:
                raise _failed(f"no such card: {', '.join(map(str, unknown))}; known are {', '.join(KNOWN)}")
            session.settings = replace(session.settings, cards=tuple(chosen))
            server.publisher.everything()
        return {"known": list(KNOWN), "chosen": list(session.settings.cards)}

    async def explain(rule: str) -> dict[str, Any]:
        from phobos.check import registry
        from phobos.check.rule import url
        from phobos.ide.rules import rule_manual

        code = registry.code_of(rule)
        if code is None:
            raise _failed(f"no rule is called `{rule}`")
        text = rule_manual(code)
        server.spawn(_show(server, f"{code}.md", text))
        return {"code": code, "markdown": text, "url": url(code)}

    async def restart() -> None:
        session.configurations.forget()
        for document in session.documents.values():
            document.replace_text(document.text, document.version)
        await server.workers.close()
        await server.scanners.close()
        server.publisher.everything()
        log.info("caches dropped, workers ended")

    for name, handler in ((RUN, run), (HAPPEN, happen), (CARDS, cards), (EXPLAIN, explain), (RESTART, restart)):
        server.command(name)(handler)


def _register_show(server: Server, command: str) -> None:
    form, ending = SHOW[command]

    async def show(uri: str, kernel: str) -> dict[str, Any]:
        if form != "facts" and not server.session.settings.compiler:
            raise _failed("compiling is switched off in this workspace")
        with _document(server, uri, run=False) as (document, path):
            async with _progress(server, f"{kernel}: {form}"):
                ended = await children.phobos(["emit", path, "--kernel", kernel, "--format", form], path, document)
        if ended.code:
            raise _failed(_words(ended) or f"`phobos emit` ended with {ended.code}")
        server.spawn(_show(server, f"{kernel}.{ending}", ended.output))
        return {"text": ended.output, "kernel": kernel, "format": form, "uri": document.uri}

    server.command(command)(show)


async def _run(server: Server, uri: str, kernel: str, options: list[str]) -> dict[str, Any]:
    if not server.session.settings.run:
        raise _failed("running kernels is switched off in this workspace")
    with _document(server, uri, run=True) as (document, path):
        async with _progress(server, f"running {kernel}"):
            ended = await children.phobos(["run", path, "--kernel", kernel, *options], path, document)
    text = ended.output + ended.errors
    server.spawn(_show(server, f"{kernel}.run.txt", text))
    return {"exitCode": ended.code, "output": text, "kernel": kernel}


@contextlib.contextmanager
def _document(server: Server, uri: str, run: bool) -> Iterator[tuple[Opened, str]]:
    document = server.session.document(uri)
    if document is None:
        raise _failed(f"no such document: {uri}")
    try:
        with children.file_to_run(document) if run else children.file_of(document) as path:
            yield document, path
    except JobFailed as error:
        raise _failed(str(error)) from None


async def _show(server: Server, name: str, text: str) -> None:
    """Open a text beside the code, where the client can; what it cannot show it still has in the answer."""
    if not server.session.client.shows_documents:
        return
    from phobos.codegen import cache

    path = cache.root() / "shown" / name
    if not cache.keep(path, text.encode("utf-8", "replace")):
        log.error("cannot write %s", path)
        return
    params = types.ShowDocumentParams(uri=uri_of(str(path)), external=False, take_focus=True)
    with contextlib.suppress(Exception):  # the client's own trouble; the answer holds the text
        await server.ask(types.WINDOW_SHOW_DOCUMENT, params)


@contextlib.asynccontextmanager
async def _progress(server: Server, title: str) -> AsyncIterator[None]:
    """A progress bar whose cancel button ends what is inside."""
    if not server.session.client.progress:
        yield
        return
    token = str(uuid.uuid4())
    progress = server.work_done_progress
    await asyncio.shield(asyncio.ensure_future(progress.create_async(token)))
    progress.begin(token, types.WorkDoneProgressBegin(title=title, cancellable=True))
    own = asyncio.current_task()
    loop = asyncio.get_running_loop()
    watched = progress.tokens[token]

    def stop(future: Any) -> None:
        if future.cancelled() and own is not None:
            loop.call_soon_threadsafe(own.cancel)

    watched.add_done_callback(stop)
    try:
        yield
    finally:
        progress.tokens.pop(token, None)
        progress.end(token, types.WorkDoneProgressEnd())


def _words(ended: children.Ended) -> str:
    return (ended.errors.strip() or ended.output.strip()).removeprefix("phobos: error: ")


def _failed(message: str) -> JsonRpcException:
    return JsonRpcException(message=message, code=REQUEST_FAILED)



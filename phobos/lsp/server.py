"""The server: pygls with our own documents, our own errors, and requests that are registered one file each.

What the library does otherwise and is changed here: it keeps texts itself (ours are kept by `Session`), it leaves
a request with unreadable parameters unanswered, it answers before `initialize` and raises when a late reply meets
a cancelled question.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

from lsprotocol import converters, types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import _prepare_command_arguments, lsp_method

import phobos
from phobos.lsp.collecting import Collector
from phobos.lsp.convert import Ready
from phobos.lsp.publishing import Publisher
from phobos.lsp.session import Session
from phobos.lsp.sweeping import Sweeper
from phobos.lsp.workers import Workers

log = logging.getLogger("phobos.lsp")

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
SLOW_MS = 100  # a handler that takes longer is a fault worth a line in the log

F = TypeVar("F", bound=Callable[..., Any])
Builtin = Generator[Any, Any, Any]


class Protocol(LanguageServerProtocol):
    """The library's protocol without its documents."""

    _server: Server

    def _ours(self, method: str, *arguments: object) -> Builtin:
        handler = self.fm.features.get(method)
        if handler is not None:
            yield handler, arguments, None

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Builtin:
        return (yield from self._ours(types.TEXT_DOCUMENT_DID_OPEN, params))

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Builtin:
        return (yield from self._ours(types.TEXT_DOCUMENT_DID_CHANGE, params))

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Builtin:
        return (yield from self._ours(types.TEXT_DOCUMENT_DID_CLOSE, params))

    @lsp_method(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def lsp_workspace__did_change_workspace_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> Builtin:
        return (yield from self._ours(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, params))

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:  # type: ignore[override]
        """As the library does it, but in the request's own task, so that cancelling the request ends the work."""
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"there is no command `{params.command}`")
        try:
            arguments, keywords = _prepare_command_arguments(handler, params, self._converter)
        except Exception as error:
            raise JsonRpcInvalidParams(f"{params.command}: {error}") from error
        answer = handler(*arguments, **keywords)
        return await answer if inspect.isawaitable(answer) else answer

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: object) -> Builtin:
        self._server.ended_in_order = self._shutdown
        if self._server.left is not None:
            self._server.left.set()
        return
        yield

    # --- from bytes to messages ---------------------------------------------------------------------------

    def receive(self, body: bytes) -> None:
        """Handle one message. Whatever it is, the conversation goes on; what asks for an answer gets one."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            log.warning("a message is not JSON: %s", error)
            self._refuse(None, PARSE_ERROR, "the message is not JSON")
            return
        if not isinstance(data, dict):
            self._refuse(None, INVALID_REQUEST, "a message is one JSON object")
            return
        number = data.get("id")
        known = isinstance(number, str) or (isinstance(number, int) and not isinstance(number, bool))
        if data.get("jsonrpc") != self.VERSION or not isinstance(data.get("method", ""), str):
            if "method" in data:
                self._refuse(number if known else None, INVALID_REQUEST, 'a request has "jsonrpc": "2.0" and a method')
            return
        if "id" in data and not known:
            if "method" in data:
                self._refuse(None, INVALID_REQUEST, "the id of a request is a number or a string")
            return
        if "method" in data:
            data.pop("error", None)  # which would make it a reply
        try:
            self.handle_message(self.structure_message(data))
        except Exception as error:
            log.warning("a message cannot be handled: %s", error)

    # --- order of messages ------------------------------------------------------------------------------

    def _handle_request(self, msg_id: str | int, method_name: str, params: Any) -> None:
        started = self._server.initialized
        if not started and method_name != types.INITIALIZE:
            self._refuse(msg_id, -32002, "the server has not been initialized yet")
        elif started and method_name == types.INITIALIZE:
            self._refuse(msg_id, INVALID_REQUEST, "the server is initialized already")
        else:
            super()._handle_request(msg_id, method_name, params)

    def _handle_notification(self, method_name: str, params: Any) -> None:
        if self._server.initialized or method_name == types.EXIT:
            super()._handle_notification(method_name, params)

    def handle_message(self, message: Any) -> None:
        self._server.collector.touched()
        if self._shutdown and hasattr(message, "id") and hasattr(message, "method"):
            self._refuse(message.id, INVALID_REQUEST, "the server has been shut down")
            return
        super().handle_message(message)

    def _handle_response(self, msg_id: str | int, result: Any = None, error: Any = None) -> None:
        future = self._request_futures.get(msg_id)
        if future is not None and future.done():  # the question was cancelled while its answer was on the way
            self._request_futures.pop(msg_id, None)
            return
        super()._handle_response(msg_id, result, error)

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._refuse(data["id"], -32602, f"the parameters of {data['method']} cannot be understood")
            elif "id" in data:  # a reply that is none: whoever waits for it must not wait for ever
                waiting = self._request_futures.pop(data["id"], None)
                if waiting is not None and not waiting.done():
                    waiting.set_exception(error)
            raise

    def _send_response(self, msg_id: str | int, result: Any = None, error: types.ResponseError | None = None) -> None:
        if isinstance(result, Ready) and error is None:
            self._send_data({"id": msg_id, "jsonrpc": self.VERSION, "result": result.json})
        else:
            super()._send_response(msg_id, result, error)

    def _refuse(self, msg_id: str | int | None, code: int, message: str) -> None:
        # Said here: the library leaves out the id of what has none, which the protocol wants as null.
        self._send_data({"id": msg_id, "jsonrpc": self.VERSION, "error": {"code": code, "message": message}})

    def _check_handler_result(self, future: Future[Any]) -> None:
        if not future.cancelled():
            super()._check_handler_result(future)


class Server(LanguageServer):
    """`session` is what is known of the client; `publisher` sends findings; `workers` do what takes long."""

    protocol: Protocol

    def __init__(self) -> None:
        self.session = Session()
        self.initialized = False
        self.ended_in_order = False
        self.stop = threading.Event()
        self.left: asyncio.Event | None = None
        super().__init__(
            "phobos",
            phobos.__version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=Protocol,
            converter_factory=converters.get_converter,
        )
        self.workers = Workers(1)
        self.scanners = Workers(2)
        self.publisher = Publisher(self)
        self.sweeper = Sweeper(self)
        self.collector = Collector()
        self.on_close: list[Callable[[str], None]] = []  # told the key of a document that was closed
        self._background: set[asyncio.Task[Any]] = set()

    # --- registering ------------------------------------------------------------------------------------

    def serve(self, method: str, options: object = None) -> Callable[[F], F]:
        """Register a handler. What it raises is logged and answered as an error; the server goes on."""

        def register(handler: F) -> F:
            if asyncio.iscoroutinefunction(handler):

                async def waiting(params: Any) -> Any:
                    try:
                        return await handler(params)
                    except (JsonRpcException, asyncio.CancelledError):
                        raise
                    except Exception:
                        log.exception("%s failed", method)
                        raise

                self.feature(method, options)(waiting)
            else:

                def timed(params: Any) -> Any:
                    start = time.perf_counter()
                    try:
                        return handler(params)
                    except JsonRpcException:
                        raise
                    except Exception:
                        log.exception("%s failed", method)
                        raise
                    finally:
                        took = (time.perf_counter() - start) * 1000
                        if took > SLOW_MS:
                            log.warning("%s took %.0f ms", method, took)

                self.feature(method, options)(timed)
            return handler

        return register

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Into the log, never into the user's face: what failed was answered or will be asked again.

        What cannot be done as asked (a name that is taken, a kernel that does not compile) is an answer, and no error.
        """
        refused = isinstance(error, JsonRpcException) and error.code == types.LSPErrorCodes.RequestFailed
        log.log(
            logging.INFO if refused else logging.ERROR, "%s: %s", getattr(source, "__name__", source), error
        )

    # --- doing things beside the conversation -------------------------------------------------------------

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        """A task that nobody waits for; its failure is logged."""
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work)
        self._background.add(task)

        def finished(done: asyncio.Task[Any]) -> None:
            self._background.discard(done)
            if not done.cancelled() and (error := done.exception()) is not None:
                log.error("a task failed", exc_info=error)

        task.add_done_callback(finished)
        return task

    async def ask(self, method: str, params: object) -> Any:
        """A request to the client, shielded: a cancelled task must not leave its reply without a taker."""
        return await asyncio.shield(self.protocol.send_request_async(method, params))

    def log_to_client(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        self.window_log_message(types.LogMessageParams(kind, message))

    def show(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        self.window_show_message(types.ShowMessageParams(kind, message))

    def refresh(self) -> None:
        """Ask the client to ask again, for everything it said it can be asked for."""
        client = self.session.client
        if client.pulls and client.refreshes_diagnostics:
            self.protocol.send_request(types.WORKSPACE_DIAGNOSTIC_REFRESH, None)
        if client.refreshes_hints:
            self.protocol.send_request(types.WORKSPACE_INLAY_HINT_REFRESH, None)
        if client.refreshes_tokens:
            self.protocol.send_request(types.WORKSPACE_SEMANTIC_TOKENS_REFRESH, None)
        if client.refreshes_lenses:
            self.protocol.send_request(types.WORKSPACE_CODE_LENS_REFRESH, None)

    async def close(self) -> None:
        for task in list(self._background):
            task.cancel()
        await self.workers.close()
        await self.scanners.close()

    def workers_down(self) -> None:
        self.workers.kill()
        self.scanners.kill()


def create() -> Server:
    """A server with every request registered that does not depend on the client; `initialize` adds the rest."""
    from phobos.lsp import requests

    server = Server()
    requests.register(server)
    return server

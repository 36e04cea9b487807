"""A client that says exactly what a test wants, over a real server process: bytes in, bytes out, nothing assumed."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

TIMEOUT = 60.0  # of a machine with much else to do

NEOVIM = {"general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]}}


class ServerError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]


class Wire:
    """A server process and what it has said so far. Requests of the server are answered by `answer`."""

    def __init__(
        self, options: Sequence[str] = (), environment: dict[str, str] | None = None, prelude: str = ""
    ) -> None:
        """`options` are arguments of `phobos.lsp.main` as written; `prelude` is run before it, to break things."""
        call = f"sys.exit(main({', '.join(['stdio=True', *options])}))"
        code = "\n".join(["import sys", "from phobos.lsp import main", prelude, call])
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment,
        )  # fmt: skip
        self.received: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.notifications: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Any] = lambda request: None
        self.errors = ""
        self._id = 0
        self._replies: dict[int, dict[str, Any]] = {}
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()

    # --- speaking -------------------------------------------------------------------------------------

    def send(self, message: dict[str, Any] | bytes) -> None:
        body = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"method": method, "params": params})

    def ask(self, method: str, params: Any = None) -> int:
        """Send a request; its reply is fetched by `reply`."""
        self._id += 1
        self.send({"id": self._id, "method": method, "params": params})
        return self._id

    def request(self, method: str, params: Any = None) -> Any:
        return self.reply(self.ask(method, params))

    # --- listening ------------------------------------------------------------------------------------

    def reply(self, number: int, timeout: float = TIMEOUT) -> Any:
        while number not in self._replies:
            self._next(timeout)
        message = self._replies.pop(number)
        if "error" in message:
            raise ServerError(message["error"])
        return message["result"]

    def wait_for(self, method: str, matching: Callable[[Any], bool] = lambda params: True) -> Any:
        """The params of the next notification of that kind that was not waited for yet."""
        while True:
            for number, message in enumerate(self.notifications):
                if message["method"] == method and matching(message["params"]):
                    del self.notifications[number]
                    return message["params"]
            self._next()

    def wait_for_log(self, text: str) -> None:
        deadline = time.monotonic() + TIMEOUT
        while text not in self.errors:
            assert time.monotonic() < deadline, f"the log never says {text!r}; it says\n{self.errors}"
            with contextlib.suppress(AssertionError):  # what the server asks meanwhile is answered
                self._next(0.02)

    def _next(self, timeout: float = TIMEOUT) -> None:
        try:
            message = self.received.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"the server says nothing any more; its log:\n{self.errors}") from None
        assert message is not None, f"the server has ended; its log:\n{self.errors}"
        if "method" not in message:
            self._replies[message["id"]] = message
        elif "id" in message:
            self.requests.append(message)
            self.send({"id": message["id"], "result": self.answer(message)})
        else:
            self.notifications.append(message)

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = 0
            while True:
                line = stream.readline()
                if not line:
                    self.received.put(None)
                    return
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                if not line.strip():
                    break
            self.received.put(json.loads(stream.read(length)))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line.decode("utf-8", "replace")

    # --- a life ---------------------------------------------------------------------------------------

    def start(
        self, capabilities: dict[str, Any] | None = None, options: Any = None, folders: Sequence[str] = ()
    ) -> dict[str, Any]:
        """`initialize` and `initialized`; the server's capabilities."""
        result = self.request(
            "initialize",
            {
                "processId": None, "rootUri": None, "capabilities": capabilities or {},
                "initializationOptions": options,
                "workspaceFolders": [{"uri": uri, "name": uri} for uri in folders] or None,
            },
        )  # fmt: skip
        self.notify("initialized", {})
        return result["capabilities"]  # type: ignore[no-any-return]

    def open(self, uri: str, text: str, version: int = 1) -> None:
        self.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": uri, "languageId": "phobos", "version": version, "text": text}},
        )

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)},
        )

    def at(self, method: str, uri: str, line: int, character: int, **more: Any) -> Any:
        position = {"line": line, "character": character}
        return self.request(f"textDocument/{method}", {"textDocument": {"uri": uri}, "position": position, **more})

    def about(self, method: str, uri: str, **more: Any) -> Any:
        return self.request(f"textDocument/{method}", {"textDocument": {"uri": uri}, **more})

    def stop(self) -> int:
        """`shutdown`, `exit`; the process's exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self.process.wait(TIMEOUT)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self._threads:  # they end with the streams
            thread.join(TIMEOUT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

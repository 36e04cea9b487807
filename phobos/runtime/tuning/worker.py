"""The process that judges: `python -m phobos.runtime.tuning.worker`, spoken to by `executor.Processes` alone.

Messages are pickles with their length before them, on standard input and output. The first says where modules are
found, which function is called, what all its tasks share and whether they are less urgent than others; each after it
is a task. It ends with its input, even in the middle of a task, so that nobody's end leaves a kernel running.
"""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
from importlib import import_module
from typing import IO, Any

from phobos.runtime.tuning.executor import HEAD, UP, Lost

BACKGROUND = 10  # what is timed meanwhile is not held up by what is compiled


def main() -> None:
    """Answer tasks from standard input, until it ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no message
    messages: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, messages), daemon=True).start()
    path, called, shared, background = pickle.loads(messages.get())
    if background and hasattr(os, "nice"):
        os.nice(BACKGROUND)
    sys.path[:] = path
    module, _, name = called.partition(":")
    function = getattr(import_module(module), name)
    _say(answers, UP)
    while True:
        task = pickle.loads(messages.get())
        try:
            result: Any = function(shared, task)
        except Exception as error:
            import traceback

            traceback.print_exc()
            result = Lost("failed", f"{type(error).__name__}: {error}")
        _say(answers, result)


def _read(stream: IO[bytes], messages: queue.Queue[bytes]) -> None:
    while True:
        head = stream.read(HEAD.size)
        data = stream.read(HEAD.unpack(head)[0]) if len(head) == HEAD.size else b""
        if not data:
            os._exit(0)
        messages.put(data)


def _say(stream: IO[bytes], what: Any) -> None:
    data = pickle.dumps(what)
    stream.write(HEAD.pack(len(data)) + data)
    stream.flush()


if __name__ == "__main__":
    main()

"""Judging elsewhere: a small interface, and processes of this machine behind it.

A kernel that is being tried may take its process with it, or never come back. So work is done in processes of their
own, each killed when its task takes too long and started again for the next one; what was lost is a result like any
other. Nothing here knows what a kernel is: `function(shared, task)` is called there, and what it gives comes back.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import IO, Any, Literal, Protocol, TypeVar

from phobos.processes import command, environment
from phobos.value import value

Shared = TypeVar("Shared", contravariant=True)
Job = TypeVar("Job")
Result = TypeVar("Result")

HEAD = struct.Struct("<Q")  # the length of a message, before it
START_S = 60.0  # that a process may take to come up
GRACE_S = 5.0


@value
class Lost:
    """A task whose process died ("crashed"), was killed for taking too long ("hung"), or raised ("failed")."""

    kind: Literal["crashed", "hung", "failed"]
    why: str


class Executor(Protocol):
    """Calls a function elsewhere, on tasks that are asked for one by one as there is room for them.

    `function` is one of a module; it, `shared`, the tasks and the results can be pickled. Results come in the order
    in which they are ready, and the next task is not asked for before the consumer has seen the result before it. A
    task that takes longer than `limit_s` seconds is given up. Nothing is raised for what happens to a task.
    """

    def map(
        self, function: Callable[[Any, Any], Any], shared: Any, tasks: Iterator[Any], limit_s: float
    ) -> Iterator[tuple[Any, Any | Lost]]: ...

    def close(self) -> None:
        """End what runs; to be called also after an exception."""


class Here:
    """In this process, one after another: no crash is survived and no limit kept. For runs that cannot go wrong."""

    def map(
        self, function: Callable[[Any, Any], Any], shared: Any, tasks: Iterator[Any], limit_s: float
    ) -> Iterator[tuple[Any, Any | Lost]]:
        for task in tasks:
            yield task, function(shared, task)

    def close(self) -> None:
        pass


class Processes:
    """`count` processes of this machine, started when there is a task for them; in the `background` others go first.

    `close` may be called in another thread than that which maps: what runs there is then lost.
    """

    def __init__(self, count: int = 1, *, background: bool = False) -> None:
        self.count = count
        self.background = background
        self._workers: list[_Worker] = []

    def map(
        self, function: Callable[[Any, Any], Any], shared: Any, tasks: Iterator[Any], limit_s: float
    ) -> Iterator[tuple[Any, Any | Lost]]:
        called = f"{function.__module__}:{function.__qualname__}"
        first = pickle.dumps((list(sys.path), called, shared, self.background))
        answers: queue.Queue[tuple[_Worker, Any]] = queue.Queue()
        busy: dict[_Worker, tuple[Any, float]] = {}
        idle: list[_Worker] = []
        self.close()
        more = True
        while True:
            while more and len(busy) < self.count:
                try:
                    task = next(tasks)
                except StopIteration:
                    more = False
                    break
                worker = next((worker for worker in idle if not worker.is_dead), None)
                if worker is None:
                    worker = _Worker(first, answers)
                    self._workers.append(worker)
                else:
                    idle.remove(worker)
                worker.send(task)
                busy[worker] = task, monotonic() + limit_s + (0.0 if worker.is_up else START_S)
            if not busy:
                self.close()
                return
            worker, task, result = self._next(answers, busy, limit_s)
            if isinstance(result, Lost) and result.kind != "failed":
                if worker in self._workers:
                    self._workers.remove(worker)
            else:
                idle.append(worker)
            yield task, result

    def _next(
        self, answers: queue.Queue[tuple[_Worker, Any]], busy: dict[_Worker, tuple[Any, float]], limit_s: float
    ) -> tuple[_Worker, Any, Any | Lost]:
        while True:
            late = min(busy, key=lambda worker: busy[worker][1])
            try:
                worker, answer = answers.get(timeout=max(0.0, busy[late][1] - monotonic()))
            except queue.Empty:
                late.kill()
                return late, busy.pop(late)[0], Lost("hung", f"no answer within {limit_s:g} s, so it was ended")
            if worker not in busy:
                worker.is_dead = True  # the end of one that was killed, or had nothing to do
                continue
            if answer is UP:
                busy[worker] = busy[worker][0], monotonic() + limit_s
                continue
            task, _ = busy.pop(worker)
            return worker, task, worker.lost() if answer is None else answer

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        self._workers = []


UP = "up"  # what a process says when it has loaded what it needs


class _Worker:
    """One process, and a thread that reads what it says."""

    def __init__(self, first: bytes, answers: queue.Queue[tuple[_Worker, Any]]) -> None:
        self.is_up = self.is_dead = False
        self._answers = answers
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        # A group of its own: Ctrl-C is for the process that was asked, which then ends this one.
        apart: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        self._process = subprocess.Popen(
            command("phobos.runtime.tuning.worker"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
            env=environment(), **apart,
        )  # fmt: skip
        self._write(first)
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, task: Any) -> None:
        self._write(pickle.dumps(task))

    def _write(self, data: bytes) -> None:
        stream = self._process.stdin
        assert stream is not None
        with contextlib.suppress(OSError):  # it has died: the reader says so
            stream.write(HEAD.pack(len(data)) + data)
            stream.flush()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with stream:
            while True:
                head = stream.read(HEAD.size)
                data = stream.read(HEAD.unpack(head)[0]) if len(head) == HEAD.size else b""
                if not data:
                    break
                answer = pickle.loads(data)
                if answer == UP:
                    self.is_up = True
                    answer = UP
                self._answers.put((self, answer))
        self._answers.put((self, None))

    def lost(self) -> Lost:
        """How it ended, after it did by itself."""
        try:
            code = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return Lost("crashed", "its process closed its output")
        last = self._last_words()
        self._close()
        if code < 0:
            try:
                how = f"by {signal.Signals(-code).name}"
            except ValueError:
                how = f"by signal {-code}"
            said = f"its process was killed {how}"
        else:
            said = f"its process ended with exit code {code}"
        return Lost("crashed", f"{said}: {last}" if last else said)

    def _last_words(self) -> str:
        try:
            self._said.seek(0, os.SEEK_END)
            self._said.seek(max(0, self._said.tell() - 4096))
            lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        except (OSError, ValueError):
            return ""
        return lines[-1].strip() if lines else ""

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        self._close()

    def _close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._said.close()

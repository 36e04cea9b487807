"""The variants of a kernel that is tuned, tried on the workers of a cluster: one task a worker at a time, so that a
GPU that times one does nothing else.

A worker that is lost loses its task, which another one does again; a task that loses two workers is given up and says
so. A task that takes too long is given up, and its worker started anew.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Any

from phobos.runtime.cluster.connect import DEATHS, Cluster
from phobos.runtime.cluster.waiting import Watch, alive, some
from phobos.runtime.tuning.executor import START_S, Lost
from phobos.value import value

TICK_S = 0.5


def itself(shared: Any) -> Any:
    """On a worker, which keeps it: what all tasks share comes to it once, and is one object to all of them there."""
    return shared


def called(function: Callable[[Any, Any], Any], shared: Any, task: Any) -> Any:
    """On a worker."""
    try:
        return function(shared, task)
    except Exception as error:
        return Lost("failed", f"{type(error).__name__}: {error}")


@value
class _Run:
    """A task on a worker. `until` is when it has taken too long, `lost` how many workers it has taken with it."""

    task: Any
    worker: str
    until: float
    lost: int


class Workers:
    """An `Executor` of tuning."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._running: dict[Any, _Run] = {}
        self._leaving: set[str] = set()  # workers that are started anew
        self._answered: set[str] = set()  # workers that have loaded what they need

    def map(
        self, function: Callable[[Any, Any], Any], shared: Any, tasks: Iterator[Any], limit_s: float
    ) -> Iterator[tuple[Any, Any | Lost]]:
        self.close()
        watch = Watch(self.cluster.client)
        there = self.cluster.client.submit(itself, shared, pure=False)
        again: list[tuple[Any, int]] = []
        more, done = True, 0
        while True:
            live = self._live()
            for future, run in list(self._running.items()):
                if run.worker in live:
                    continue
                self._forget(future)
                if run.lost + 1 < DEATHS:
                    again.append((run.task, run.lost + 1))
                else:
                    done += 1
                    yield run.task, Lost("crashed", f"its worker ended {DEATHS} times while it ran")
            busy = {run.worker for run in self._running.values()}
            for worker in sorted(set(live) - busy):
                if again:
                    task, lost = again.pop()
                elif more:
                    try:
                        task, lost = next(tasks), 0
                    except StopIteration:
                        more = False
                        break
                else:
                    break
                self._begin(function, there, task, worker, limit_s, lost)
            if not (self._running or again or more):
                return
            for future, run in self._ended():
                done += 1
                yield run.task, self._result(future, limit_s)
            watch.look(done)

    def _live(self) -> list[str]:
        return [worker for worker in alive(self.cluster.client) if worker not in self._leaving]

    def _begin(
        self, function: Callable[[Any, Any], Any], shared: Any, task: Any, worker: str, limit_s: float, lost: int
    ) -> None:
        future = self.cluster.client.submit(
            called, function, shared, task, pure=False, workers=[worker], allow_other_workers=False
        )
        until = monotonic() + limit_s + (0.0 if worker in self._answered else START_S)
        self._running[future] = _Run(task, worker, until, lost)

    def _ended(self) -> list[tuple[Any, _Run]]:
        """Those that have a result or have taken too long, after waiting a little for one of them."""
        if self._running:
            some(self.cluster.client, list(self._running), TICK_S)
        else:
            sleep(TICK_S)  # until there is a worker again
        now = monotonic()
        ended = [(future, run) for future, run in self._running.items() if future.done() or now > run.until]
        for future, run in ended:
            del self._running[future]
            if future.done():
                self._answered.add(run.worker)
            else:
                self._forget(future)
                self._restart(run.worker)
        return ended

    def _restart(self, worker: str) -> None:
        """Meanwhile the others go on; it comes back under another address."""
        self._leaving.add(worker)

        def restart() -> None:
            with contextlib.suppress(Exception):
                self.cluster.client.restart_workers([worker], timeout=START_S)

        threading.Thread(target=restart, daemon=True).start()

    def _result(self, future: Any, limit_s: float) -> Any | Lost:
        from distributed.scheduler import KilledWorker

        if future.status == "finished":
            return future.result()
        if future.status != "error":
            return Lost("hung", f"no answer within {limit_s:g} s, so its worker was started anew")
        try:
            error = future.exception()
        except Exception as raised:
            error = raised
        if isinstance(error, KilledWorker):
            return Lost("crashed", "its worker ended while it ran, again and again")
        return Lost("failed", f"{type(error).__name__}: {error}")

    def _forget(self, future: Any) -> None:
        self._running.pop(future, None)
        with contextlib.suppress(Exception):
            future.cancel(force=True)

    def close(self) -> None:
        for future in list(self._running):
            self._forget(future)

"""Waiting for tasks of a cluster: counted as they end, and given up where nobody is left who could do them."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from phobos.errors import LaunchError

ALONE_S = 30.0  # without a single worker
PAUSED_S = 20.0  # with every worker over its memory, and nothing done


def gathered(client: Any, futures: list[Any], progress: Callable[[int, int], None] | None = None) -> list[Any]:
    """The results, in order. Raises what a task raised; LaunchError where the workers cannot go on."""
    watch = Watch(client)
    pending = list(futures)
    while pending:
        pending = [future for future in pending if not future.done()]
        watch.look(len(futures) - len(pending))
        if progress is not None:
            progress(len(futures) - len(pending), len(futures))
        if pending:
            some(client, pending, 0.5)
    return [result_of(future) for future in futures]


def result_of(future: Any) -> Any:
    """What a task gave. Raises what it raised, and LaunchError where it took its workers with it."""
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        times = error.allowed_failures + 1
        raise LaunchError(f"a shard was given up: its worker ended {times} times while it ran") from None


def some(client: Any, futures: list[Any], seconds: float) -> None:
    """Wait until one of them has ended, however it did, but not longer than this."""
    from concurrent.futures import CancelledError

    from distributed import wait

    with client.as_current():
        try:
            wait(futures, timeout=seconds, return_when="FIRST_COMPLETED")
        except (TimeoutError, CancelledError):
            return  # the caller looks at each


def alive(client: Any) -> list[str]:
    """The addresses of all workers that the scheduler knows now."""
    return sorted(client.nthreads())


class Watch:
    """Looks from time to time whether anybody works."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.done = -1
        self.since = monotonic()

    def look(self, done: int) -> None:
        """Raises LaunchError where `done` has not grown for long and nobody can go on."""
        now = monotonic()
        if done != self.done:
            self.done, self.since = done, now
            return
        if now - self.since < min(ALONE_S, PAUSED_S):
            return
        if not alive(self.client):
            if now - self.since > ALONE_S:
                raise LaunchError("all workers have gone, and none has come for 30 s")
            return
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        states = {str(worker.get("status", "running")) for worker in workers.values()}
        if states == {"paused"} and now - self.since > PAUSED_S:
            folders = sorted({str(worker.get("local_directory", "?")) for worker in workers.values()})
            raise LaunchError(
                "every worker has reached its memory limit and cannot spill to disk: is there room in "
                f"{', '.join(folders)}? (`temporary-directory` of dask's configuration names another folder)"
            )

"""Waiting for tasks of a cluster: counted as they end, and given up where nobody is left who could do them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Any

from phobos.errors import LaunchError

ALONE_S = 30.0  # without a single worker
PAUSED_S = 20.0  # with every worker over its memory, and nothing done


def arriving(
    client: Any, futures: list[Any], progress: Callable[[int, int], None] | None = None
) -> Generator[tuple[int, Any]]:
    """The results as they come, each with its place in `futures`, which is emptied: what has come here is held there no
    longer. Raises what the first task in order raised that did; LaunchError where the workers cannot go on."""
    watch = Watch(client)
    total = len(futures)
    pending = dict(enumerate(futures))
    failed: dict[int, Any] = {}
    futures.clear()
    try:
        while pending:
            for place in [place for place, future in pending.items() if future.done()]:
                future = pending.pop(place)
                if future.status == "error":
                    failed[place] = future
                    continue
                result = result_of(future)
                future.release()  # whoever still knows of it
                yield place, result
                del result
                if progress is not None:
                    progress(total - len(pending), total)
            if failed and not any(place < min(failed) for place in pending):
                result_of(failed[min(failed)])
            watch.look(total - len(pending))
            if pending:
                some(client, list(pending.values()), 0.5)
    finally:
        for future in pending.values():
            future.cancel(force=True)


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

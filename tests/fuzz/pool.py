"""Many inputs on many processes, each watched: one that hangs where no signal arrives is ended and named, one that
dies is named and replaced, and how much memory each holds is told with what it did.
"""

from __future__ import annotations

import gc
import multiprocessing as mp
import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from phobos.value import value
from tests.fuzz.inputs import Input, input_of
from tests.fuzz.stages import TooLong, limit, tried_input

Source = Callable[[int], Input]
CHUNK = 64  # inputs a process is given at a time
HANGS = 240.0  # seconds at one input: more than its own limit, which a signal keeps
MAKING = 10.0  # seconds of the processor for an input that a process was lost with
MEMORY = 6 << 30  # bytes of addresses: what grows without bound meets it and is named
COLLECTED = 16  # chunks after which a process looks for garbage among what is old
ALLOCATIONS = 100_000  # new objects before the collector looks: a checked input makes tens of thousands, hardly a cycle


@value
class Wrong:
    """An input that goes wrong, as it was, and what was said. `given` is None where making it is what goes wrong."""

    number: int
    said: str
    given: Input | None


@dataclass
class Sums:
    """What became of some inputs. `said` is what the checker said of the first of them."""

    first: int
    count: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    wrong: list[Wrong] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)
    said: str = ""
    process: int = 0
    resident_bytes: int = 0  # of the process when it was done


def work(first: int, count: int, at: Any = None, source: Source = input_of) -> Sums:
    """Try inputs one after another; `at.value` says which one is tried, `source` what its text is."""
    sums = Sums(first)
    for number in range(first, first + count):
        if at is not None:
            at.value = number
        began = time.perf_counter()
        given = source(number)
        one = tried_input(given)
        sums.slowest = max(sums.slowest, (time.perf_counter() - began, number))
        sums.count += 1
        sums.stages.update(one.stages)
        sums.codes.update(one.codes)
        sums.ways[one.way] += 1
        sums.seconds.update(one.seconds)
        if one.wrong:
            sums.wrong.append(Wrong(number, one.wrong, given))
        if number == first:
            sums.said = one.said
    sums.process, sums.resident_bytes = os.getpid(), resident_bytes()
    return sums


def resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # no /proc: the most it ever was
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _serve(pipe: Connection, at: Any, source: Source) -> None:
    """A process: chunks in, sums out; `at` says which input it is at."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    gc.set_threshold(ALLOCATIONS, 10, 10)
    done = 0
    while (chunk := pipe.recv()) is not None:
        pipe.send(work(*chunk, at, source))
        done += 1
        if done % COLLECTED == 0:
            gc.collect()


@contextmanager
def own_cache() -> Iterator[None]:
    """What Phobos tools keep on disk lies in a folder of this run's own, and goes with it: the user's would fill with
    what nobody wrote.
    """
    before = os.environ.get("PHOBOS_CACHE")
    with tempfile.TemporaryDirectory(prefix="phobos-fuzz-", ignore_cleanup_errors=True) as folder:
        os.environ["PHOBOS_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["PHOBOS_CACHE"]
            if before is not None:
                os.environ["PHOBOS_CACHE"] = before


@dataclass
class _Worker:
    pipe: Connection
    process: Any
    at: Any
    chunk: tuple[int, int] = (0, 0)
    seen: int = -1
    since: float = 0.0


def all_tried(
    chunks: Sequence[tuple[int, int]], jobs: int, seconds: float = float("inf"), source: Source = input_of
) -> Iterator[Sums]:
    """The sums of every chunk (first, count), as they are done; after that many seconds no further one is begun."""
    ends = time.monotonic() + seconds
    left = list(reversed(chunks))
    workers = [_begin(source) for _ in range(min(jobs, len(left)))]
    try:
        while workers:
            for worker in workers:
                if worker.chunk == (0, 0) and left and time.monotonic() < ends:
                    _give(worker, left.pop())
            workers = [worker for worker in workers if worker.chunk != (0, 0) or _end(worker)]
            ready = wait([worker.pipe for worker in workers], timeout=1.0)
            for number, worker in enumerate(workers):
                if worker.pipe in ready:
                    try:
                        sums = worker.pipe.recv()
                        worker.chunk = (0, 0)
                    except (EOFError, OSError):
                        sums = _lost(worker, left, "the process died", source)
                        workers[number] = _begin(source)
                    yield sums
                elif worker.at.value != worker.seen:
                    worker.seen, worker.since = worker.at.value, time.monotonic()
                elif time.monotonic() - worker.since > HANGS:
                    yield _lost(worker, left, f"more than {HANGS:g} s", source)
                    workers[number] = _begin(source)
    finally:
        for worker in workers:
            worker.process.kill()


def _begin(source: Source) -> _Worker:
    context = mp.get_context("fork")
    mine, theirs = context.Pipe()
    at = context.Value("q", -1, lock=False)
    process = context.Process(target=_serve, args=(theirs, at, source), daemon=True)
    process.start()
    theirs.close()
    return _Worker(mine, process, at)


def _give(worker: _Worker, chunk: tuple[int, int]) -> None:
    worker.chunk, worker.seen, worker.since = chunk, -1, time.monotonic()
    worker.at.value = chunk[0]
    worker.pipe.send(chunk)


def _end(worker: _Worker) -> bool:
    """Let a process go that has nothing to do; False, so that it is left out."""
    worker.pipe.send(None)
    worker.process.join(10)
    return False


def _lost(worker: _Worker, left: list[tuple[int, int]], why: str, source: Source) -> Sums:
    """What a process was at is wrong; what it had before is tried again, what came after is still to come."""
    number = int(worker.at.value)
    first, count = worker.chunk
    worker.process.kill()
    worker.process.join()
    if number + 1 < first + count:
        left.append((number + 1, first + count - number - 1))
    if number > first:
        left.append((first, number - first))
    given = None
    with suppress(TooLong), limit(MAKING):
        given = source(number)
    return Sums(number, 1, wrong=[Wrong(number, why, given)])

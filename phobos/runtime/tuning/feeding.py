"""Variants compiled while others are judged: a thread that hands the compilers one after another and keeps what comes.

What is asked of it is never more than a few variants ahead of the judges, so that a budget is not spent on compiling.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from phobos.runtime.tuning.ahead import Ahead, ahead
from phobos.runtime.tuning.executor import Executor, Lost
from phobos.runtime.tuning.judging import Row
from phobos.runtime.tuning.problem import Problem
from phobos.runtime.tuning.space import Variant
from phobos.value import value

COMPILE_S = 120.0
MOST_AHEAD = 32  # variants that are compiled, or being compiled, and not tried


@value
class Found:
    """What became of a variant."""

    variant: Variant
    made: Ahead | Row | Lost


class Feed:
    """`choose` gives the next variant, None where there is none. It is called in the thread of the feed, when there is
    a compiler for the variant and few are waiting to be tried: `tried` says that one of them no longer does."""

    def __init__(self, compilers: Executor, problem: Problem, choose: Callable[[], Variant | None]) -> None:
        self._compilers = compilers
        self._choose = choose
        self._found: queue.Queue[Found | BaseException | None] = queue.Queue()
        self._room = threading.Semaphore(MOST_AHEAD)
        self._stopped = False
        self.is_over = False  # nothing more comes
        self._thread = threading.Thread(target=self._work, args=(problem,), daemon=True)
        self._thread.start()

    def _work(self, problem: Problem) -> None:
        try:
            for variant, made in self._compilers.map(ahead, problem, iter(self._next, None), COMPILE_S):
                self._found.put(Found(variant, made))
        except BaseException as error:
            self._found.put(error)
        self._found.put(None)

    def _next(self) -> Variant | None:
        self._room.acquire()
        return None if self._stopped else self._choose()

    def tried(self) -> None:
        self._room.release()

    def take(self, *, wait: bool) -> list[Found]:
        """What has been compiled since the last time; `wait` for the first, unless all is over."""
        taken: list[Found] = []
        while not self.is_over:
            try:
                found = self._found.get(block=wait and not taken)
            except queue.Empty:
                break
            if isinstance(found, BaseException):
                raise found
            if found is None:
                self.is_over = True
            else:
                taken.append(found)
        return taken

    def close(self) -> None:
        """End what is being compiled."""
        self._stopped = True
        self._room.release()
        self._compilers.close()
        self._thread.join()

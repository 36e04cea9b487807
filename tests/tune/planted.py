"""Judges with a fault planted at the boundary of the worker: what a miscompiled, crashing or hanging variant does.

The product's own judge runs; only what comes out of one variant's run is spoilt, or its process is.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

from phobos.runtime.tuning.judging import Row, Task, engine_of
from phobos.runtime.tuning.judging import judge as real
from phobos.runtime.tuning.problem import Problem

WRONG, CRASH, HANG, RAISE = 8, 16, 32, 64  # the TILE that goes wrong so


class Miscompiled:
    """An engine whose results are off by one in the last cell."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def run(self, *given: Any) -> Any:
        plan, arrays = self.inner.run(*given)
        for array in arrays.values():
            if array.size and array.dtype.kind == "f":
                array.reshape(-1)[-1] += 1
        return plan, arrays

    def times(self, *given: Any) -> Iterator[Any]:
        raise AssertionError("a wrong variant was timed")


def judge(problem: Problem, task: Task) -> Row:
    tile = dict(task.variant.constants).get("TILE")
    if tile == CRASH:
        os.kill(os.getpid(), signal.SIGSEGV)
    if tile == HANG:
        time.sleep(1000)
    if tile == RAISE:
        raise ZeroDivisionError("a defect")
    engine = engine_of(problem.device)
    return real(problem, task, Miscompiled(engine) if tile == WRONG else None)


class Clock:
    """An engine whose times are known: `TILE` milliseconds a repeat."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def run(self, *given: Any) -> Any:
        return self.inner.run(*given)

    def times(self, kernel: Any, bound: Any, options: Any, repeat: int) -> Iterator[Any]:
        tile = dict(options.constants)["TILE"]
        plan, _ = self.inner.run(kernel, bound, options)
        for _ in range(repeat):
            yield plan, float(tile)


def timed(problem: Problem, task: Task) -> Row:
    return real(problem, task, Clock(engine_of(problem.device)))

"""The garbage collector, less eager while a file is analysed.

An analysis makes many small values that live as long as the file does: looking through them all, again and again, for
cycles that are hardly ever there costs a fifteenth of a check. The threshold is the process's; it is put back when the
last of the threads that raised it is done.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 100_000  # more than a kernel of a hundred lines makes

_lock = threading.Lock()
_inside = 0
_before: tuple[int, int, int] = (0, 0, 0)


@contextmanager
def patient_collector() -> Iterator[None]:
    """Collect after `ALLOCATIONS` new objects, not after the few of Python's default. What is off stays off."""
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = gc.get_threshold()
            if 0 < _before[0] < ALLOCATIONS:
                gc.set_threshold(ALLOCATIONS, *_before[1:])
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                gc.set_threshold(*_before)

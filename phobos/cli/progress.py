"""A bar on the terminal for work that takes longer than a second."""

from __future__ import annotations

import sys
import time

SLOW_S = 1.0
WIDTH = 24


class Progress:
    """`step` after each piece of `total`; `end` takes the bar away. Silent where stderr is no terminal."""

    def __init__(self, total: int, what: str) -> None:
        self.total = total
        self.what = what
        self.done = 0
        self.start = time.monotonic()
        self.shown = False

    def step(self) -> None:
        self.done += 1
        if sys.stderr.isatty() and time.monotonic() - self.start > SLOW_S:
            filled = WIDTH * self.done // max(1, self.total)
            sys.stderr.write(f"\r[{'#' * filled}{'.' * (WIDTH - filled)}] {self.done}/{self.total} {self.what}")
            sys.stderr.flush()
            self.shown = True

    def end(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

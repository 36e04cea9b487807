"""A bar on stderr for a run that takes longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any


class Progress:
    """A bar on stderr, once a run takes longer than a second and somebody is looking."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.bar: Any = None
        self.task: Any = None
        self.begun = perf_counter()

    def __enter__(self) -> Callable[[int, int], None] | None:
        return self._advance if sys.stderr.isatty() else None

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def _advance(self, done: int, total: int) -> None:
        if self.bar is None:
            if perf_counter() - self.begun < 1.0:
                return
            try:
                from rich.console import Console
                from rich.progress import Progress as Bar
            except ModuleNotFoundError:  # as the editor brings the package: a run without a bar
                self.begun = float("inf")
                return
            self.bar = Bar(console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task(self.what, total=total)
            self.bar.start()
        self.bar.update(self.task, completed=done)

"""When the server looks for garbage: while nobody waits.

Facts of a kernel refer to one another in circles, so what an edit replaces is found by Python's collector alone. Left
to itself it runs in the middle of requests, and a look through everything takes 150 ms. Here it is told when: the
young objects after findings have been sent, everything in a pause of typing. What has been looked through is set
aside (`gc.freeze`) until that pause comes: programs are kept for hundreds of edits, so a second look at what survived
the first finds nothing and would take 35 ms of every fortieth key.
"""

from __future__ import annotations

import asyncio
import gc

ALLOCATIONS = 200_000  # new objects after which Python looks by itself: hundreds of edited kernels
MOST_ASIDE = 1_000_000  # survivors, after which no pause is waited for
WORTH_IT = 20_000  # survivors, of which a pause makes use
PAUSE_SECONDS = 1.0


class Collector:
    """`start` once; `touched` at every message; `rested` when findings, which take work, have been made."""

    def __init__(self) -> None:
        self._aside = 0  # objects that survived their first look, since the last look through everything
        self._waiting: asyncio.TimerHandle | None = None
        self._last = 0.0  # time of the last message

    def start(self) -> None:
        """What was made so far (modules, tables) stays."""
        gc.set_threshold(ALLOCATIONS, 10, 10)
        gc.freeze()

    def touched(self) -> None:
        loop = asyncio.get_running_loop()
        self._last = loop.time()
        if self._waiting is None:
            self._waiting = loop.call_later(PAUSE_SECONDS, self._pause)

    def rested(self) -> None:
        """Look through what is new, as soon as what was just made has been sent."""
        asyncio.get_running_loop().call_later(0.001, self._look)

    def _look(self) -> None:
        self._aside += gc.get_count()[0] - gc.collect(1)
        if self._aside > MOST_ASIDE:
            self._everything()
        else:
            gc.freeze()

    def _everything(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._aside = 0

    def _pause(self) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time() - self._last
        if since < PAUSE_SECONDS:
            self._waiting = loop.call_later(PAUSE_SECONDS - since, self._pause)
            return
        self._waiting = None
        if self._aside + gc.get_count()[0] >= WORTH_IT:
            self._everything()

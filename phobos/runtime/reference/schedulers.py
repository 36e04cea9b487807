"""Who runs next, where blocks run one at a time: round robin, seeded random, adversarial.

A scheduler sees the ids of the blocks that can run, ascending, and names one; it is asked again each time a
block has come to a barrier, an atomic or the end of a `while` round. The same seed gives the same run.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

NAMES = ("round-robin", "random", "adversarial")


class Scheduler(Protocol):
    def pick(self, runnable: Sequence[int]) -> int: ...


class RoundRobin:
    """Each block in turn, in the order of their ids."""

    def __init__(self) -> None:
        self.last = -1

    def pick(self, runnable: Sequence[int]) -> int:
        at = bisect_right(runnable, self.last)
        self.last = runnable[at] if at < len(runnable) else runnable[0]
        return self.last


class Random:
    """Any block, each turn anew."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, runnable: Sequence[int]) -> int:
        return runnable[self.random.randrange(len(runnable))]


class Adversarial:
    """Unfair on purpose, in a way that the seed chooses.

    One block, the victim, runs only when no other can: seed n starves block n (modulo the grid), so that as
    many schedules as there are blocks starve each of them once. The others run in one of four ways: strictly
    in turn, in turn backwards, in bursts of random length, or a pair alternating before all the rest.
    """

    PATIENCE = 4096  # turns after which even the victim gets one, should the others never come to rest

    def __init__(self, seed: int, blocks: int) -> None:
        self.random = random.Random(seed)
        self.victim = seed % blocks
        self.style = (seed // blocks + seed) % 4
        self.last = -1
        self.burst = 0
        self.waited = 0
        others = [b for b in (self.random.sample(range(blocks), min(blocks, 3))) if b != self.victim]
        self.pair = others[:2]
        self.toggle = 0

    def pick(self, runnable: Sequence[int]) -> int:
        if len(runnable) == 1:
            self.last = runnable[0]
            return self.last
        self.waited += 1
        if self.waited > self.PATIENCE and self.victim in runnable:
            self.waited = 0
            return self.victim
        rest = [block for block in runnable if block != self.victim]
        self.last = self._among(rest)
        return self.last

    def _among(self, rest: Sequence[int]) -> int:
        if self.style == 0:
            at = bisect_right(rest, self.last)
            return rest[at] if at < len(rest) else rest[0]
        if self.style == 1:
            below = [block for block in rest if block < self.last]
            return below[-1] if below else rest[-1]
        if self.style == 2:
            if self.burst > 0 and self.last in rest:
                self.burst -= 1
                return self.last
            self.burst = self.random.choice((0, 0, 1, 2, 5, 50))
            return rest[self.random.randrange(len(rest))]
        ready = [block for block in self.pair if block in rest]
        if len(ready) == 2:
            self.toggle ^= 1
            return ready[self.toggle]
        if ready:
            return ready[0]
        return rest[self.random.randrange(len(rest))]


def scheduler_of(name: str, seed: int, blocks: int) -> Scheduler:
    """The scheduler called `name`. Raises ValueError for a name that is none."""
    match name:
        case "round-robin":
            return RoundRobin()
        case "random":
            return Random(seed)
        case "adversarial":
            return Adversarial(seed, max(blocks, 1))
    raise ValueError(f"no scheduler is called {name!r}: choose {', '.join(NAMES)}")

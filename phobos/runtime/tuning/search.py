"""The search itself: compile ahead, judge one after another, drop what is clearly slower, stop when told to.

It takes variants and an executor and knows neither files nor terminals; what it finds is told row by row, so that
whoever interrupts it has all rows so far.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic

from phobos.runtime.tuning.ahead import Ahead
from phobos.runtime.tuning.executor import Executor, Lost
from phobos.runtime.tuning.feeding import Feed, Found
from phobos.runtime.tuning.judging import Lent, Row, Task, judge
from phobos.runtime.tuning.problem import Problem
from phobos.runtime.tuning.space import Variant, with_grids
from phobos.value import value

REFERENCE_BLOCKS = 8  # of a persistent grid on the reference runtime, where nobody says how many are resident


@value
class Step:
    """What is being done: `number` of `total` of this stage, the variant, and the best row so far."""

    stage: str  # "compiling" or "trying"
    number: int
    total: int
    label: str
    best: Row | None


Report = Callable[[Step], None]


class Search:
    """One tuning as it goes on. `rows` by the label of their variant, known ones included; `left` were not tried."""

    def __init__(
        self,
        problem: Problem,
        variants: Sequence[Variant],
        sizes: Mapping[str, int],
        *,
        known: Mapping[str, Row] | None = None,
        keep: Callable[[Row], None] = lambda row: None,
        report: Report = lambda step: None,
        budget_s: float | None = None,
        judged_by: Callable[[Problem, Task], Row] = judge,
    ) -> None:
        self.problem = problem
        self.variants = list(variants)
        self.sizes = dict(sizes)
        self.known = dict(known or {})
        self.keep = keep
        self.report = report
        self.until = None if budget_s is None else monotonic() + budget_s
        self.judged_by = judged_by
        self.rows: dict[str, Row] = {}
        self.from_disk = 0
        self.left: list[Variant] = list(variants)
        self._asked: set[str] = set()
        self._open: set[str] = set()
        self._lent: dict[tuple[object, ...], Lent] = {}
        self._kernel = problem.made()
        self._lock = threading.Lock()  # of what the thread that compiles looks at: `rows` and these
        self._waiting: list[Variant] = []  # not compiled yet
        self._begun: set[tuple[tuple[str, int], ...]] = set()

    @property
    def best(self) -> Row | None:
        return best_of(self.rows.values())

    @property
    def untuned(self) -> Row | None:
        """The row of what runs without tuning."""
        return self.rows.get(self.problem.base.label)

    def run(self, judges: Executor, compilers: Executor | None = None) -> None:
        """Judge every variant that is not known, each as soon as it is compiled. What an exception (Ctrl-C) interrupts
        can be gone on with."""
        self._asked = set(self.rows)
        if compilers is None:
            few = self.problem.resident or REFERENCE_BLOCKS
            for variant in self.variants:
                self._open_up(variant, few)
            self._judge(judges, None)
            return
        with self._lock:
            self._waiting = list(self.variants)
            self._begun.clear()
        self.report(Step("compiling", 0, len(self.variants), "", None))
        feed = Feed(compilers, self.problem, self._to_compile)
        try:
            self._judge(judges, feed)
        finally:
            feed.close()

    def _to_compile(self) -> Variant | None:
        """Choices of constants that were never tried before all, then what has the best constants so far."""
        with self._lock:
            if not self._waiting or self._is_over():
                return None
            ranks = self._ranks()
            chosen = next((variant for variant in self._waiting if variant.constants not in self._begun), None)
            if chosen is None:
                chosen = min(self._waiting, key=lambda variant: ranks.get(variant.constants, math.inf))
            self._begun.add(chosen.constants)
            self._waiting.remove(chosen)
            return chosen

    def _compiled(self, feed: Feed, found: Found) -> None:
        """Take in a variant that was compiled, or that cannot be."""
        variant, made = found.variant, found.made
        if isinstance(made, Ahead):
            self._lent[_code(variant)] = made.lent or {}
            if self._open_up(variant, made.ctas_per_sm):
                return
        else:
            self.left = [other for other in self.left if other is not variant]
            self._add(_lost(variant, made) if isinstance(made, Lost) else made)
        feed.tried()

    def _open_up(self, variant: Variant, per_sm: int) -> bool:
        """Have a variant tried, at the grids it can have, but those that are known. Whether there is any."""
        new: list[Variant] = []
        for one in self._grids(variant, per_sm):
            if one.label in self.rows:
                continue
            if one.label in self.known:
                self._add(self.known[one.label])
                self.from_disk += 1
            else:
                new.append(one)
        self._open.update(one.label for one in new)
        self.left = [other for other in self.left if other is not variant] + new
        return bool(new)

    def _grids(self, variant: Variant, per_sm: int) -> Iterator[Variant]:
        if self.problem.grid is not None:
            yield variant
            return
        program = self._kernel.analysed(self.problem.constants(variant))[1].program
        yield from with_grids(variant, program, self.sizes, per_sm, self.problem.multiprocessors)

    def _judge(self, judges: Executor, feed: Feed | None) -> None:
        problem = self.problem
        limit_s = 2 * problem.timeout_s + problem.seconds
        released: set[tuple[object, ...]] = set()

        def tasks() -> Iterator[Task]:
            while not self._is_over():
                variant = self._next_of(feed)
                if variant is None:
                    return
                self._asked.add(variant.label)
                code, best = _code(variant), self.best
                if feed is not None and code not in released:
                    released.add(code)
                    feed.tried()
                self.report(Step("trying", len(self.rows) + 1, len(self.rows) + len(self.left), variant.label, best))
                lent = self._lent.get(code)
                if not any(_code(other) == code for other in self.left if other.label not in self._asked):
                    self._lent.pop(code, None)  # nobody else needs it
                yield Task(variant, None if best is None else best.least_ms, lent)

        for task, judged in judges.map(self.judged_by, problem, tasks(), limit_s):
            row = _lost(task.variant, judged) if isinstance(judged, Lost) else judged
            self.left = [variant for variant in self.left if variant.label != row.variant.label]
            self._add(row)
            self.keep(row)

    def _next_of(self, feed: Feed | None) -> Variant | None:
        """The next to try, when it is compiled; None where there is none."""
        while True:
            if feed is not None:
                for found in feed.take(wait=False):
                    self._compiled(feed, found)
            variant = self._next()
            if variant is not None or feed is None or feed.is_over:
                return variant
            with self._lock:
                begun = len(self.variants) - len(self._waiting)
            self.report(Step("compiling", begun, len(self.variants), "", self.best))
            for found in feed.take(wait=True):
                self._compiled(feed, found)

    def _next(self) -> Variant | None:
        """Constants that were never tried before all, then whatever has the best constants: a budget is well spent."""
        ranks = self._ranks()
        waiting = [v for v in self.left if v.label in self._open and v.label not in self._asked]
        return min(waiting, key=lambda variant: ranks.get(variant.constants, -1.0), default=None)

    def _ranks(self) -> dict[tuple[tuple[str, int], ...], float]:
        """Of each choice of constants that was tried, the best time."""
        known: dict[tuple[tuple[str, int], ...], float] = {}
        for row in self.rows.values():
            ms = row.elapsed_ms if row.elapsed_ms is not None else math.inf
            known[row.variant.constants] = min(ms, known.get(row.variant.constants, math.inf))
        return known

    def _add(self, row: Row) -> None:
        with self._lock:
            self.rows[row.variant.label] = row

    def _is_over(self) -> bool:
        return self.until is not None and monotonic() > self.until


def _code(variant: Variant) -> tuple[object, ...]:
    """Variants that differ in their grid alone have the same code."""
    return variant.constants, variant.schedule, variant.l2_group


def best_of(rows: Iterable[Row]) -> Row | None:
    """The fastest of the rows that were timed to the end."""
    timed = [row for row in rows if row.status == "ok"]
    return min(timed, key=lambda row: row.elapsed_ms or 0.0, default=None)


def _lost(variant: Variant, lost: Lost) -> Row:
    from time import strftime

    return Row(variant, "hung" if lost.kind == "hung" else "crashed", lost.why, date=strftime("%Y-%m-%d"))

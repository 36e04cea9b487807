"""The search itself: compile all, judge one after another, drop what is clearly slower, stop when told to.

It takes variants and an executor and knows neither files nor terminals; what it finds is told row by row, so that
whoever interrupts it has all rows so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic

from phobos.runtime.tuning.ahead import Ahead, ahead
from phobos.runtime.tuning.executor import Executor, Lost
from phobos.runtime.tuning.judging import Lent, Row, Task, judge
from phobos.runtime.tuning.problem import Problem
from phobos.runtime.tuning.space import Variant, with_grids
from phobos.value import value

COMPILE_S = 120.0
CHUNK = 32  # variants that are compiled together
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

    @property
    def best(self) -> Row | None:
        return best_of(self.rows.values())

    @property
    def untuned(self) -> Row | None:
        """The row of what runs without tuning."""
        return self.rows.get(self.problem.base.label)

    def run(self, judges: Executor, compilers: Executor | None = None) -> None:
        """Judge every variant that is not known. What an exception (Ctrl-C) interrupts can be gone on with."""
        waiting = list(self.variants)
        while waiting and not self._is_over():
            # What is compiled together is tried before more is: a budget is not spent on compiling alone.
            chunk = waiting if compilers is None else self._chunk(waiting)
            chosen = {variant.label for variant in chunk}
            waiting = [variant for variant in waiting if variant.label not in chosen]
            per_sm = {variant.label: self.problem.resident or REFERENCE_BLOCKS for variant in chunk}
            fitting = chunk
            if compilers is not None:
                fitting = []
                for variant, made in self._compiled(compilers, chunk):
                    if isinstance(made, Ahead):
                        fitting.append(variant)
                        per_sm[variant.label] = made.ctas_per_sm
                        self._lent[_code(variant)] = made.lent or {}
                    else:
                        self._add(made)
            order = list(self._with_grids(fitting, per_sm))
            for variant in order:
                if variant.label in self.known and variant.label not in self.rows:
                    self.rows[variant.label] = self.known[variant.label]
                    self.from_disk += 1
            self._open = {variant.label for variant in order}
            self.left = [variant for variant in order if variant.label not in self.rows] + waiting
            self._judge(judges, len(self.rows) + len(self.left))

    def _chunk(self, waiting: Sequence[Variant]) -> list[Variant]:
        """A variant of each choice of constants that was never tried; else some of those with the best constants."""
        ranks = self._ranks()
        fresh = {variant.constants: variant for variant in reversed(waiting) if variant.constants not in ranks}
        if fresh:
            return [variant for variant in waiting if fresh.get(variant.constants) is variant]
        return sorted(waiting, key=lambda variant: ranks[variant.constants])[:CHUNK]

    def _compiled(self, compilers: Executor, chunk: Sequence[Variant]) -> Iterator[tuple[Variant, Ahead | Row]]:
        """The variants in their order, with what became of them."""
        found: dict[str, Ahead | Row] = {}
        tasks = (variant for variant in chunk if not self._is_over())
        total = len(chunk)
        self.report(Step("compiling", 0, total, "", None))
        for variant, made in compilers.map(ahead, self.problem, tasks, COMPILE_S):
            found[variant.label] = _lost(variant, made) if isinstance(made, Lost) else made
            self.report(Step("compiling", len(found), total, variant.label, None))
        for variant in chunk:
            if variant.label in found:
                yield variant, found[variant.label]

    def _with_grids(self, variants: Sequence[Variant], per_sm: Mapping[str, int]) -> Iterator[Variant]:
        kernel = self.problem.made()
        for variant in variants:
            program = kernel.analysed(self.problem.constants(variant))[1].program
            if self.problem.grid is not None:
                yield variant
                continue
            most = per_sm[variant.label]
            yield from with_grids(variant, program, self.sizes, most, self.problem.multiprocessors)

    def _judge(self, judges: Executor, total: int) -> None:
        problem = self.problem
        limit_s = 2 * problem.timeout_s + problem.seconds

        def tasks() -> Iterator[Task]:
            while not self._is_over():
                variant = self._next()
                if variant is None:
                    return
                self._asked.add(variant.label)
                best = self.best
                self.report(Step("trying", len(self.rows) + 1, total, variant.label, best))
                yield Task(variant, None if best is None else best.least_ms, self._lent.get(_code(variant)))

        for task, judged in judges.map(self.judged_by, problem, tasks(), limit_s):
            row = _lost(task.variant, judged) if isinstance(judged, Lost) else judged
            self.left = [variant for variant in self.left if variant.label != row.variant.label]
            self._add(row)
            self.keep(row)

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

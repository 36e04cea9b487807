"""A kernel tuned on arguments: the problem set, the search run, rows and winner kept. What command and Python call.

`Tuning` is the result as a value; it is complete when nothing is `left`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter, strftime
from typing import TYPE_CHECKING, Any

from phobos.errors import LaunchError
from phobos.runtime import gate
from phobos.runtime.device import number_of
from phobos.runtime.kernel import Kernel
from phobos.runtime.scheduling import schedule_for
from phobos.runtime.tuning import keeping
from phobos.runtime.tuning.executor import Executor, Processes
from phobos.runtime.tuning.judging import BROKEN, MEASURED, Row, Task, judge
from phobos.runtime.tuning.keeping import Winner
from phobos.runtime.tuning.problem import Problem, judged_at
from phobos.runtime.tuning.search import Report, Search
from phobos.runtime.tuning.space import Variant, space, worth
from phobos.semantics.fusion import FusedProgram
from phobos.semantics.program import Program
from phobos.semantics.schedules import BLOCKED, INTERLEAVED
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.binding import Bound


@value
class Tuning:
    """What tuning found. `rows` are measured ones first, the fastest first; `best` is the fastest that was timed to the
    end and `untuned` the row of what runs without tuning, each None where there is none.

    `from_disk` of the rows were there before, `left` variants were not tried (budget, Ctrl-C). `kept` is the file of
    winners, None where nothing was kept.
    """

    kernel: str
    path: str
    device: str
    card: str
    sizes: dict[str, int]
    judged_sizes: dict[str, int]
    held: dict[str, int]
    rows: tuple[Row, ...]
    best: Row | None
    untuned: Row | None
    from_disk: int
    left: int
    interrupted: bool
    seconds: float
    kept: str | None

    @property
    def speedup(self) -> float | None:
        """How many times as fast as without tuning the best is."""
        if self.best is None or self.untuned is None or not self.best.elapsed_ms or not self.untuned.elapsed_ms:
            return None
        return self.untuned.elapsed_ms / self.best.elapsed_ms

    @property
    def broken(self) -> tuple[Row, ...]:
        """Rows that say that something is wrong with the kernel or with this project."""
        return tuple(row for row in self.rows if row.status in BROKEN)

    def __str__(self) -> str:
        from phobos.runtime.tuning.report import text

        return text(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython in a terminal."""
        printer.text(str(self))

    def as_dict(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel, "filename": self.path, "device": self.device, "card": self.card,
            "sizes": self.sizes, "judged_sizes": self.judged_sizes, "held": self.held,
            "rows": [row.as_dict() for row in self.rows],
            "best": None if self.best is None else self.best.as_dict(),
            "untuned": None if self.untuned is None else self.untuned.as_dict(), "speedup": self.speedup,
            "from_disk": self.from_disk, "left": self.left, "interrupted": self.interrupted,
            "seconds": self.seconds, "kept": self.kept,
        }  # fmt: skip


GROUPS = (1, 4, 8, 16)  # blocks along x that stand in a band, where the grid has several bands


@value
class Machine:
    """The device that variants are judged on: `arch` "" for the reference runtime; `card` as `keeping.card` has it."""

    arch: str
    multiprocessors: int
    card: str


@value
class How:
    """How to tune. None is "what there is" for `schedules` and `l2_groups`, "the plan's or the variant's" for `grid`.

    `budget_s` bounds the whole search, `timeout_s` a kernel; `jobs` processes compile. `fresh` forgets the rows on
    disk. `executor` calls `judged_by` (the judge, if None), in a process of this machine if None; where it does so on
    other machines, `machine` says what they have.
    """

    grid: tuple[int, ...] | None = None
    resident: int | None = None
    schedules: tuple[str, ...] | None = None
    l2_groups: tuple[int, ...] | None = None
    seed: int = 0
    scratch: tuple[str, ...] = ()
    repeat: int = 20
    timeout_s: float = 30.0
    budget_s: float | None = None
    jobs: int | None = None
    fresh: bool = False
    executor: Executor | None = None
    judged_by: Callable[[Problem, Task], Row] | None = None
    machine: Machine | None = None


def tune(
    kernel: Kernel,
    bound: Bound,
    names: Mapping[str, str],
    arrays: Mapping[str, Any],
    fixed: Mapping[str, int],
    device: str,
    how: How,
    report: Report = lambda step: None,
    on_interrupt: Callable[[Tuning], None] | None = None,
) -> Tuning:
    """Tune `kernel` on the arguments `bound` (host arrays), which are `names` as text and `arrays` as such.

    `fixed` are the constants that the caller set. Raises CheckError where a finding forbids a launch, InputError where
    the kernel as it is cannot be judged, LaunchError for options that no kernel has. On Ctrl-C `on_interrupt` is given
    what there is so far, and KeyboardInterrupt goes on.
    """
    begun = perf_counter()
    if not how.timeout_s:
        raise LaunchError("a variant that hangs must be ended some time: give a `timeout` of more than 0 seconds")
    gate.demand(kernel.findings_at(fixed), kernel.name, kernel.text, on_device=True)
    for schedule, group in itertools.product(how.schedules or (None,), how.l2_groups or (None,)):
        schedule_for(schedule, group)
    machine = how.machine or machine_of(device)
    problem, variants, sizes = _posed(kernel, bound, names, arrays, fixed, device, how, machine)
    key, card = kernel.key, machine.card
    rows = keeping.rows_of(problem, key, card, fresh=how.fresh)
    search = Search(
        problem, variants, sizes, known=rows.kept, keep=rows.add, report=report, budget_s=how.budget_s,
        judged_by=how.judged_by or judge,
    )  # fmt: skip

    def result(*, interrupted: bool) -> Tuning:
        best, kept = search.best, None
        if best is not None and not interrupted:
            winner = Winner(
                best.variant, problem.held, how.grid, dict(bound.dims), best.elapsed_ms or 0.0,
                None if search.untuned is None else search.untuned.elapsed_ms, strftime("%Y-%m-%d"),
            )  # fmt: skip
            where = keeping.keep_winner(key, kernel.name, card, winner)
            kept = None if where is None else str(where)
        return Tuning(
            kernel.name, kernel.path, device, card, dict(bound.dims), problem.small, problem.held,
            tuple(sorted(search.rows.values(), key=_order)), best, search.untuned, search.from_disk, len(search.left),
            interrupted, perf_counter() - begun, kept,
        )  # fmt: skip

    try:
        with _executors(how, machine.arch) as (judges, compilers):
            search.run(judges, compilers)
    except KeyboardInterrupt:
        if on_interrupt is not None:
            on_interrupt(result(interrupted=True))
        raise
    return result(interrupted=False)


def _posed(
    kernel: Kernel, bound: Bound, names: Mapping[str, str], arrays: Mapping[str, Any], fixed: Mapping[str, int],
    device: str, how: How, machine: Machine,
) -> tuple[Problem, list[Variant], dict[str, int]]:  # fmt: skip
    """The problem, the variants that can be one of its answers, and the extents and integer parameters. Raises what
    `tune` raises."""
    program = kernel.analysed(dict(fixed))[1].program
    for name in how.scratch:
        if name not in program.tensors:
            raise LaunchError(f"`{kernel.name}` has no tensor `{name}` that could be workspace")
    sizes = {name: size for name, size in bound.sizes.items() if name not in program.constants}
    variants = space(program, fixed, _schedules(how, program, device), _groups(how, device))
    base = variants[0]
    tuned = dict(base.constants)
    held = {name: constant.value for name, constant in program.constants.items() if name not in tuned}
    bound_by_launch = {c.name for c in _grid_constants(program)} - set(fixed)
    held = {name: number for name, number in held.items() if name not in bound_by_launch}
    problem = Problem(
        kernel.path, kernel.text, kernel.name, dict(names), dict(arrays), how.seed, dict(bound.dims), dict(bound.dims),
        held, base, device, machine.arch, machine.multiprocessors, how.grid, how.resident, how.scratch, how.repeat,
        how.timeout_s, order=kernel.order,
    )  # fmt: skip
    programs = [kernel.analysed(problem.constants(variant))[1].program for variant in variants]
    problem = judged_at(problem, dict.fromkeys(programs))
    fitting = [v for v, p in zip(variants, programs, strict=True) if worth(v, p, sizes, how.grid)]
    if not fitting:
        raise LaunchError(f"`{kernel.name}` cannot run under any of the schedules and groups that were asked for")
    return problem, fitting, sizes


@contextmanager
def _executors(how: How, arch: str) -> Iterator[tuple[Executor, Executor | None]]:
    judges = how.executor if how.executor is not None else Processes(1)
    compilers = Processes(how.jobs or os.cpu_count() or 1, background=True) if arch else None
    try:
        yield judges, compilers
    finally:
        judges.close()
        if compilers is not None:
            compilers.close()


def _order(row: Row) -> tuple[bool, float, str]:
    return row.status not in MEASURED, row.elapsed_ms or 0.0, row.variant.label


def _schedules(how: How, program: Program, device: str) -> tuple[str | None, ...]:
    """What there is to try; None is what a launch takes that says nothing.

    The reference runs blocks in batches whatever the schedule. `xyz` launches what `flat` does.
    """
    if how.schedules is not None:
        return tuple(schedule.replace("_", "-") for schedule in how.schedules)
    if device == "cpu" or (program.is_persistent and not isinstance(program, FusedProgram)):
        return (None,)
    if isinstance(program, FusedProgram):
        return (None, BLOCKED if len(program.fusion.phases) > 1 else INTERLEAVED)
    return (None, INTERLEAVED, BLOCKED)


def _groups(how: How, device: str) -> tuple[int, ...]:
    if how.l2_groups is not None:
        return how.l2_groups
    return (1,) if device == "cpu" else GROUPS


def _grid_constants(program: Any) -> list[Any]:
    from phobos.semantics.grid import grid_of

    return [constant.constant for constant in grid_of(program).constants if constant.stride_form]


def machine_of(device: str) -> Machine:
    """What there is to know of a device of this machine."""
    if device == "cpu":
        return Machine("", 1, keeping.card(device))
    from phobos.codegen import cards
    from phobos.runtime.cuda import driver

    number = number_of(device)
    with driver.on(number):
        arch = cards.arch_of(*driver.capability(number))
        return Machine(arch, driver.multiprocessors(number), keeping.card(device))


__all__ = ["How", "Machine", "Tuning", "Variant", "tune"]

"""A fusion in a plan: the grids of its kernels, its phases, its workers, and why a barrier stands where it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from phobos.runtime.binding import Bound
from phobos.runtime.faults import refusal
from phobos.runtime.placing import ASKED, Extents, GridOption, Placement, extents_of, place
from phobos.runtime.plan import Check, PhasePlan
from phobos.semantics.fusion import Fusion
from phobos.semantics.program import Program
from phobos.semantics.schedules import (
    FLAT,
    INTERLEAVED,
    PERSISTENT,
    Form,
    Schedule,
    ScheduleError,
    Work,
    form_of,
    schedule_called,
    share_out,
)
from phobos.value import replace, value

if TYPE_CHECKING:
    from phobos.runtime.options import LaunchOptions


@value
class Arranged:
    """The launch of a fusion: `kernels` of each phase with their grids of virtual blocks, shared out as `work` says.

    The grid of `placement` is that of the workers.
    """

    placement: Placement
    work: Work
    kernels: tuple[tuple[tuple[Program, Extents], ...], ...]
    phases: tuple[PhasePlan, ...]


def arranged(bound: Bound, fusion: Fusion, options: LaunchOptions, resident: Callable[[], tuple[int, str]]) -> Arranged:
    """Decide the launch of a fusion; `resident` says how many workers fit at once, and why. Raises LaunchError.

    Kernels with a barrier between them are shared out among resident workers; those with none run a worker a block
    unless a persistent schedule is asked for.
    """
    kernels, checks = _grids(bound, fusion)
    grids = [[grid for _, grid in phase] for phase in kernels]
    asked = _workers_asked(bound, options.grid)
    try:
        schedule = _schedule(fusion, options)
        held, why = None, ""
        if not schedule.is_persistent:
            if asked is not None:
                raise ScheduleError(
                    f"under schedule '{schedule.kind}' the grid of a fusion follows from its kernels: leave `grid` "
                    f"out, or choose {' or '.join(PERSISTENT)}, where it is the number of workers"
                )
            work, source = share_out(schedule, grids), "a worker for each block"
        else:
            held, why = resident()
            if asked is not None:
                if asked > held:
                    raise refusal(
                        bound.module, bound.unit, "not-resident",
                        f"a grid of {asked} workers is not resident: {held} fit at once ({why})", None,
                        help=f"launch at most {held} workers: each takes as many blocks as there are",
                    )  # fmt: skip
                checks = (*checks, Check("all workers are resident", f"{asked} of at most {held} ({why})", None))
            work = share_out(schedule, grids, held if asked is None else asked)
            source = f"resident workers: {why}" if asked is None else ASKED
            if asked is None and work.workers < held:
                source = f"the blocks of its largest phase; {held} workers could be resident ({why})"
    except ScheduleError as error:
        raise refusal(bound.module, bound.unit, None, str(error), None) from None
    placement = Placement(bound, work.launched, source, held, checks, ())
    return Arranged(placement, work, kernels, _phase_plans(bound, fusion, kernels))


def form_for(bound: Bound, fusion: Fusion, options: LaunchOptions) -> Form:
    """The form of the code for this launch, of which it can be asked how many workers fit. Raises LaunchError."""
    kernels, _ = _grids(bound, fusion)
    try:
        work = share_out(_schedule(fusion, options), [[grid for _, grid in phase] for phase in kernels], 1)
    except ScheduleError as error:
        raise refusal(bound.module, bound.unit, None, str(error), None) from None
    form = form_of(work)
    assert form is not None, "several kernels are never launched as they are"
    return form


def _schedule(fusion: Fusion, options: LaunchOptions) -> Schedule:
    return schedule_called(options.schedule or (INTERLEAVED if len(fusion.phases) > 1 else FLAT), options.l2_group)


def _workers_asked(bound: Bound, grid: GridOption) -> int | None:
    extents = extents_of(bound, grid)
    if extents is not None and extents[1:] != (1, 1):
        raise refusal(
            bound.module, bound.unit, None,
            f"the workers of a fusion are counted along one dimension, not {' x '.join(map(str, extents))}", None,
            help="give the grid as one number",
        )  # fmt: skip
    return None if extents is None else extents[0]


def _grids(bound: Bound, fusion: Fusion) -> tuple[tuple[tuple[tuple[Program, Extents], ...], ...], tuple[Check, ...]]:
    """The kernels of each phase with their grids, and what was checked for that. Raises LaunchError."""
    grids: list[Extents] = []
    checks: list[Check] = []
    for program in fusion.programs:
        placed = place(replace(bound, program=program), None, _no_residency, _no_constants, {})
        grids.append(placed.grid)
        checks += placed.checks
    phases = tuple(tuple((fusion.programs[n], grids[n]) for n in phase) for phase in fusion.phases)
    return phases, tuple(checks)


def _no_residency(_: Program) -> tuple[int, str]:
    raise AssertionError("the grid of an ordinary kernel hangs on no device")


def _no_constants(_: dict[str, int]) -> Bound:
    raise AssertionError("an ordinary kernel has no grid constant")


def _phase_plans(
    bound: Bound, fusion: Fusion, grids: tuple[tuple[tuple[Program, Extents], ...], ...]
) -> tuple[PhasePlan, ...]:
    """What stands in each phase, and why."""
    found: list[PhasePlan] = []
    for number, kernels in enumerate(grids):
        waits, free = fusion.reasons(number, bound.line)
        found.append(PhasePlan(tuple((program.name, grid) for program, grid in kernels), waits, free))
    return tuple(found)


__all__ = ["Arranged", "arranged", "form_for"]

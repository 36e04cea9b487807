"""From a caller's schedule and a kernel's grid to the work of a launch; what cannot be is refused by name.

The runtimes differ only in how many workers fit, which the caller brings.
"""

from __future__ import annotations

from phobos.errors import LaunchError
from phobos.runtime.binding import Bound
from phobos.runtime.faults import refusal
from phobos.runtime.placing import Extents, has_barrier
from phobos.semantics.fusion import FusedProgram
from phobos.semantics.grid import grid_of
from phobos.semantics.program import Program
from phobos.semantics.schedules import (
    FLAT,
    PERSISTENT,
    XYZ,
    Form,
    Order,
    Schedule,
    ScheduleError,
    Work,
    form_of,
    order_of,
    schedule_called,
    share_out,
)


def schedule_for(name: str | None, l2_group: int | None) -> Schedule:
    """The schedule of a name. Raises LaunchError."""
    try:
        return schedule_called(name, l2_group)
    except ScheduleError as error:
        raise LaunchError(str(error)) from None


def why_not(program: Program, schedule: Schedule) -> str | None:
    """Why a kernel cannot run under a schedule, in words, whatever its grid is; None: it can."""
    if not schedule.is_persistent and schedule.l2_group == 1:
        return None
    if program.is_persistent:
        why = "is `@persistent`: its blocks share out the work themselves"
    elif has_barrier(program):
        why = "has a grid barrier: all its blocks must run at once"
    else:
        return None
    if schedule.is_persistent:
        return f"`{program.name}` cannot run under schedule '{schedule.kind}', as it {why}"
    return f"the blocks of `{program.name}` cannot be grouped for the L2 cache, as it {why}"


def possible(bound: Bound, schedule: Schedule) -> None:
    """Raises LaunchError where a kernel cannot run under a schedule."""
    wrong = why_not(bound.program, schedule)
    if wrong is not None:
        raise refusal(
            bound.module, bound.unit, None, wrong, None,
            help=f"leave the schedule out, or use '{FLAT}'" if schedule.is_persistent else "leave `l2_group` out",
        )  # fmt: skip


def work_of(bound: Bound, schedule: Schedule, grid: Extents, resident: int | None) -> Work:
    """The work of one kernel; `resident` workers fit, asked of persistent schedules alone. Raises LaunchError."""
    try:
        return share_out(schedule, [[grid]], resident)
    except ScheduleError as error:
        raise refusal(bound.module, bound.unit, None, str(error), None) from None


def form_of_one(bound: Bound, schedule: Schedule, grid: Extents) -> Form | None:
    """The form of the code, which must be known before it is known how many workers fit. Raises LaunchError."""
    return form_of(work_of(bound, schedule, grid, 1 if schedule.kind in PERSISTENT else None))


def form_by_text(program: Program, schedule: Schedule, asked: bool) -> Form | None:
    """The form of the code where no grid is known: every kernel has as many axes as it reads.

    `asked`: the caller named the schedule. A fusion has one of its own where nobody did. Raises LaunchError.
    """
    wrong = why_not(program, schedule)
    if wrong is not None:
        raise LaunchError(wrong)
    if isinstance(program, FusedProgram):
        form = program.fusion.form
        if asked and len(form.phases) > 1 and not schedule.is_persistent:
            raise LaunchError(
                f"schedule '{schedule.kind}' has no grid barrier, but these kernels need one: "
                f"choose {' or '.join(PERSISTENT)}"
            )
        if asked and schedule.kind == XYZ:
            raise LaunchError(f"schedule '{XYZ}' launches the grid of one kernel, these are several")
        kind, axes = schedule.kind if asked else form.kind, [[order.axes for order in phase] for phase in form.phases]
    else:
        read = [axis.read for axis in grid_of(program).axes]
        kind, axes = schedule.kind, [[3 if read[2] else 2 if read[1] else 1]]
        if kind not in PERSISTENT and (schedule.l2_group == 1 or axes == [[1]]):
            return None
    group = schedule.l2_group
    return Form(kind, tuple(tuple(Order(n, group if n > 1 else 1) for n in phase) for phase in axes))


def notes_of(work: Work, l2_group: int, resident: int | None) -> tuple[str, ...]:
    """What a plan says of a schedule that does less than was asked for."""
    notes: list[str] = []
    roots = [root for phase in work.phases for root in phase.roots]
    if l2_group > 1 and all(order_of(root).l2_group == 1 for root in roots):
        if len(roots) > 1:
            what = "no grid has more than one such group"
        else:
            grid = roots[0].grid
            what = "the grid has one row of blocks" if grid[1] == 1 else f"the grid has {grid[0]} along x"
        notes.append(f"groups of {l2_group} change nothing: {what}")
    if work.is_persistent and len(roots) == 1 and resident is not None and work.workers < resident:
        notes.append(f"{work.workers} workers, one for each block; {resident} could be resident")
    return tuple(notes)

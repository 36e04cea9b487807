"""A launch in the reference runtime: the plan, the checks that stand before it, and the run itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from phobos.diagnostic import Diagnostic, Span
from phobos.errors import LaunchError
from phobos.runtime import gate
from phobos.runtime.binding import Bound, barrier_tensors
from phobos.runtime.conditions import bad_barrier, met
from phobos.runtime.detections import words_of
from phobos.runtime.faults import confirmed, raised, refusal
from phobos.runtime.options import whole
from phobos.runtime.placing import Extents, Placement, place
from phobos.runtime.plan import Check, PhasePlan, Plan
from phobos.runtime.reference.compiling import code_of
from phobos.runtime.reference.evaluation import NotExecutable
from phobos.runtime.reference.execute import Options, Outcome, execute_phases
from phobos.runtime.reference.faults import Fault
from phobos.runtime.reference.numbers import DTYPES, Array
from phobos.runtime.reference.races import TooLarge
from phobos.runtime.reference.schedulers import NAMES
from phobos.runtime.reference.steps import Steps
from phobos.runtime.scheduling import notes_of, possible, schedule_for, work_of
from phobos.runtime.sizes import duration
from phobos.semantics import ir
from phobos.semantics.fusion import FusedProgram, parts_of
from phobos.semantics.program import Program, fact
from phobos.semantics.schedules import Work
from phobos.semantics.values import expressions_in, statements_of, walk
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.options import LaunchOptions

Phases = tuple[tuple[tuple[Program, Extents], ...], ...]
MOST_TILE_BYTES = 1 << 32  # of a value of one block
RESIDENT = 8  # blocks of a persistent grid where nobody says how many


@value
class Judging:
    """How to run: what to look for beyond what is always looked for, and in which order blocks run.

    `counting` is told how long each block takes, in steps.
    """

    detect: str | tuple[str, ...] = ()
    scheduler: str | None = None
    seed: int = 0
    step_limit: int | None = None
    progress: Callable[[int, int], None] | None = None
    counting: Steps | None = None


@value
class Prepared:
    """A launch that nothing forbids: `phases` of kernels with their grids, all of one done before the next begins.
    `constants` are the caller's."""

    kernel: Kernel
    placement: Placement
    phases: Phases
    work: Work
    plan: Plan
    arrays: dict[str, Array]
    resident: int | None
    timeout_s: float | None
    constants: dict[str, int]


@value
class Verdict:
    """What a run in the reference runtime did. `block_phases` counts one for each block between two barriers.

    `disproved` are errors of the checker that this run should have shown and did not, at this grid and size.
    """

    plan: Plan
    outcome: Outcome
    elapsed_ms: float
    disproved: tuple[Diagnostic, ...]

    def __repr__(self) -> str:
        """What a prompt shows of a run that went well."""
        told = f", {len(self.disproved)} errors of the checker not confirmed" if self.disproved else ""
        return (
            f"<{self.plan.kernel} in the reference runtime: grid {' x '.join(map(str, self.plan.grid))}, "
            f"{self.batched} of {self.block_phases} block-phases in batches, {duration(self.elapsed_ms)}{told}>"
        )

    @property
    def batched(self) -> int:
        return self.outcome.batched

    @property
    def block_phases(self) -> int:
        return self.outcome.block_phases


def prepare(
    kernel: Kernel, bound: Bound, arguments: tuple[Any, ...], named: Mapping[str, Any], options: LaunchOptions
) -> Prepared:
    """Plan a launch and check all that can be checked before it. Raises LaunchError."""
    constants = dict(options.constants)
    executable(bound)
    schedule = schedule_for(options.schedule, options.l2_group)
    possible(bound, schedule)
    checks = met(bound)
    _counts_are_zero(bound)
    phase_plans: tuple[PhasePlan, ...] = ()
    phases: Phases
    if isinstance(bound.program, FusedProgram):
        from phobos.runtime.fusing import arranged

        made = arranged(bound, bound.program.fusion, options, lambda: _resident(kernel, bound.program, options))
        placement, phases, work, phase_plans = made.placement, made.kernels, made.work, made.phases
    else:
        placement = place(
            bound, options.grid, lambda program: _resident(kernel, program, options),
            lambda settled: kernel.bound(arguments, named, settled, constants), constants,
        )
        if placement.bound is not bound:
            bound = placement.bound
            checks = met(bound)
        phases = (((bound.program, placement.grid),),)
        fit: int | None = None
        if schedule.is_persistent:
            asked = options.resident
            fit, why = (asked, "as asked for") if asked else _target_resident(kernel, bound.program)
            checks.append(Check("workers of the schedule", f"{fit} fit at once: {why}", None))
            placement = replace(placement, resident=fit)
        work = work_of(bound, schedule, placement.grid, fit)
    program = bound.program
    checks += placement.checks
    arrays = {name: held.array for name, held in bound.tensors.items()}
    for name, shape in bound.supplied.items():
        arrays[name] = np.zeros(shape, np.int32)
    notes = (*placement.notes, *notes_of(work, schedule.l2_group, placement.resident))
    plan = _plan(kernel, options, placement, work, (*checks,), notes, phase_plans)
    bounded = None if program.is_persistent else options.resident
    return Prepared(kernel, placement, phases, work, plan, arrays, bounded, options.timeout or None, constants)


def _resident(kernel: Kernel, program: Program, options: LaunchOptions) -> tuple[int, str]:
    """How many blocks of a grid that waits for itself fit at once, and who says so."""
    if options.resident is not None:
        return options.resident, "as asked for"
    if options.grid is not None:
        return options.grid if isinstance(options.grid, int) else options.grid[0], "the grid asked for"
    return _target_resident(kernel, program)


def _plan(
    kernel: Kernel, options: LaunchOptions, placement: Placement, work: Work, checks: tuple[Check, ...],
    notes: tuple[str, ...], phases: tuple[PhasePlan, ...],
) -> Plan:  # fmt: skip
    program = placement.bound.program
    return Plan(
        kernel=kernel.name,
        device="cpu (reference runtime)",
        grid=placement.grid,
        grid_source=placement.source,
        block=program.launch.threads,
        constants={name: constant.value for name, constant in program.constants.items()},
        schedule=work.kind,
        shared_bytes=None,
        registers=None,
        ctas_per_sm=None,
        limiter=None,
        resident=placement.resident if placement.resident is not None else options.resident,
        timeout_s=options.timeout or None,
        timeout_source="as asked for" if options.timeout else "",
        checks=checks,
        notes=notes,
        l2_group=schedule_for(options.schedule, options.l2_group).l2_group,
        workers=work.workers,
        tiles=work.blocks,
        rounds=work.longest,
        phases=phases,
    )


def judge(prepared: Prepared, judging: Judging) -> Verdict:
    """Run. Raises KernelFault, LaunchError."""
    bound = prepared.placement.bound
    program = bound.program
    races = "races" in words_of(judging.detect)
    if judging.scheduler is not None and judging.scheduler not in NAMES:
        raise LaunchError(f"no scheduler is called {judging.scheduler!r}: choose {', '.join(NAMES)}")
    whole("seed", judging.seed, 0)
    whole("step_limit", judging.step_limit)
    options = Options(
        races=races,
        scheduler=judging.scheduler,
        seed=judging.seed,
        resident=prepared.resident,
        timeout_s=prepared.timeout_s,
        step_limit=judging.step_limit,
        progress=judging.progress,
        counting=judging.counting,
    )
    params = {}
    for name, parameter in program.params.items():
        held = bound.params[name]
        params[name] = DTYPES[parameter.dtype].type(held) if isinstance(held, float) else held
    started = perf_counter()
    try:
        outcome = execute_phases(prepared.phases, prepared.arrays, params, bound.dims, options, prepared.work)
    except Fault as fault:
        raise raised(bound.module, bound.unit, fault) from None
    except TooLarge as error:
        raise LaunchError(str(error)) from None
    except MemoryError:
        raise LaunchError(
            f"`{program.name}` needs more memory than there is here, at this grid and these sizes: take smaller ones"
        ) from None
    elapsed = 1e3 * (perf_counter() - started)
    missed = tuple(gate.doubtful(prepared.kernel.findings_at(prepared.constants)))
    return Verdict(prepared.plan, outcome, elapsed, missed)


def executable(bound: Bound) -> None:
    """Raises LaunchError where the kernel holds something that is checked but not executed, and names it."""
    for program in parts_of(bound.program):
        if (found := too_large_in(program)) is not None:
            span, shape, size = found
            raise refusal(
                bound.module, bound.unit, None,
                f"{list(shape)} cells take {size:,} bytes, over the {MOST_TILE_BYTES:,} of the reference runtime",
                span, help="choose a smaller tile or slice",
            )  # fmt: skip
    try:
        for program in parts_of(bound.program):
            code_of(program)
    except NotExecutable as error:
        from phobos.language.builtins import BUILTINS

        known = error.what.startswith("ctx.") or error.what.partition("(")[0] in BUILTINS
        what = "it is not executed here" if known else "it is no function of this file and no built-in"
        if error.what.startswith("ctx."):
            what = "per-thread code is not supported"
        raise refusal(
            bound.module, bound.unit, None, f"`{error.what}` cannot run: {what}", error.node.span,
            label="checked, but not executable yet" if known else "nothing of this name is known",
        ) from None  # fmt: skip


@fact
def too_large_in(program: Program) -> tuple[Span, tuple[int, ...], int] | None:
    """The first tile, or slice of a tensor, that no block can hold: where, its shape and its bytes."""
    for statement in statements_of(program.body):
        for access in (statement.access,) if isinstance(statement, (ir.Store, ir.DefineView)) else ():
            lengths = [sub.static for sub in access.subs if isinstance(sub, ir.SliceSub)]
            known = tuple(length for length in lengths if length is not None)
            size = _bytes_of(known, access.base.dtype if isinstance(access.base, ir.Tensor) else "f64")
            if size > MOST_TILE_BYTES:
                return access.span, known, size
        for root in expressions_in(statement):
            for one in walk(root):
                if isinstance(one.type, ir.TileT):
                    shape = tuple(length for length in one.type.shape if isinstance(length, int))
                    size = _bytes_of(shape, one.type.dtype)
                    if size > MOST_TILE_BYTES:
                        return one.span, shape, size
        if isinstance(statement, ir.Define) and isinstance(statement.variable.type, ir.TileT):
            shape = tuple(length for length in statement.variable.type.shape if isinstance(length, int))
            size = _bytes_of(shape, statement.variable.type.dtype)
            if size > MOST_TILE_BYTES:
                return statement.span, shape, size
    return None


def _bytes_of(shape: tuple[int, ...], dtype: str) -> int:
    return math.prod(shape) * int(np.dtype(DTYPES[dtype]).itemsize)


def _counts_are_zero(bound: Bound) -> None:
    """A barrier tensor that the caller brought must not have counted anything yet. Raises LaunchError."""
    for name in sorted(barrier_tensors(bound.program) & set(bound.tensors)):
        count = int(bound.tensors[name].array.reshape(-1)[0])
        if count != 0:
            raise bad_barrier(bound, name, f"starts with {count}, its count must be 0 before a launch")


def _target_resident(kernel: Kernel, program: Program) -> tuple[int, str]:
    """What the first configured target holds, else a small number."""
    from phobos.check.cards import residency
    from phobos.check.configuration import of_file
    from phobos.check.rule import Context

    if not kernel.path.startswith("<"):
        targets = of_file(kernel.path).target
        if targets:
            # Threads and shared memory alone; of several kernels, what the most demanding of them leaves room for.
            found = [residency(Context(part, targets, None), targets[0]) for part in parts_of(program)]
            counts = [one.resident for one in found if one is not None and one.resident]
            if len(counts) == len(found):
                return min(counts), f"what {targets[0]} holds"
    return RESIDENT, "the reference runtime's own number, as no target is configured"


__all__ = ["Judging", "Prepared", "Verdict", "confirmed", "judge", "prepare"]

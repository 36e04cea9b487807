"""What is decided before a launch, in seven steps, each of which may refuse it; nothing has run then.

1. the arrays, and that they lie on this device (`binding`); 2. `@aligned`; 3. that no two arguments overlap where they
must not; 4. the barrier tensor, whose count is looked at by the launch (`conditions`); 5. the bases of wide accesses,
and occupancy, asked of the loaded function on the current device after its dynamic shared size was set; 6. grid
constants, compiled again until they agree with it; 7. a cooperative launch for every kernel whose blocks wait for each
other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from phobos.errors import LaunchError
from phobos.lowering.options import RACES, Options
from phobos.runtime import gate
from phobos.runtime.arrays import SIZES, Given
from phobos.runtime.binding import Bound, barrier_tensors, bind
from phobos.runtime.conditions import met
from phobos.runtime.cuda import detection, driver
from phobos.runtime.cuda.loading import Loaded, arch, load
from phobos.runtime.detections import demand_on_gpu
from phobos.runtime.device import number_of
from phobos.runtime.faults import refusal
from phobos.runtime.fusing import arranged, form_for
from phobos.runtime.on_chip import Staying, staying
from phobos.runtime.placing import place
from phobos.runtime.plan import Check, PhasePlan, Plan
from phobos.runtime.scheduling import form_of_one, notes_of, possible, schedule_for, work_of
from phobos.semantics.fusion import FusedProgram
from phobos.semantics.multiples import WIDE_BYTES, multiples_of
from phobos.semantics.program import Program
from phobos.semantics.schedules import Work
from phobos.syntax.lines import line_at
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.options import LaunchOptions

SUSPECT = ("PH203", "PH204", "PH205", "PH207", "PH215", "PH506", "PH508")
SUSPECT_TIMEOUT_S = 60.0


@value
class Ready:
    """A launch that nothing forbids. `buffers` are the addresses of what an instrument writes to, by its name."""

    kernel: Kernel
    bound: Bound
    loaded: Loaded
    plan: Plan
    work: Work
    device: int
    context: driver.Context
    barriers: tuple[str, ...]
    buffers: tuple[tuple[str, int], ...] = ()


def prepared(kernel: Kernel, bound: Bound, options: LaunchOptions) -> Ready:
    """All that is decided before a launch, which `launch.run` then makes, any number of times. Raises LaunchError."""
    fused = bound.program if isinstance(bound.program, FusedProgram) else None
    schedule = schedule_for(options.schedule, options.l2_group)
    possible(bound, schedule)
    demand_on_gpu(options.detect, options.timeout)
    device = number_of(bound.device)
    checks = met(bound, promises=options.host_checks)
    with driver.on(device) as context:
        multiprocessors = _multiprocessors(bound, device, options.reserved_sms)
        lowering = _based(bound, lowering_for(bound, options, arch(device)), device, context)
        if lowering.instrument == RACES and (bound.program.is_persistent or schedule.is_persistent or fused):
            plain = load(bound.module, bound.unit, replace(lowering, instrument=""), device, context)
            lowering = replace(lowering, together=plain.ctas_per_sm)  # so that the grid is that of a launch without

        def resident(program: Program) -> tuple[int, str]:
            module, unit = kernel.analysed({name: c.value for name, c in program.constants.items()})
            loaded = load(module, unit, lowering, device, context)
            return loaded.ctas_per_sm * multiprocessors, (
                f"{loaded.ctas_per_sm} CTAs per multiprocessor, limited by {loaded.limiter}, on {multiprocessors}"
            )

        def rebuilt(constants: dict[str, int]) -> Bound:
            module, unit = kernel.analysed(constants)
            arguments = {**{name: held.array for name, held in bound.tensors.items()}, **bound.params}
            return bind(module, unit, unit.program, (), arguments)

        phases: tuple[PhasePlan, ...] = ()
        if fused is not None:

            def workers() -> tuple[int, str]:
                fit, why = resident(bound.program)
                bounded = options.resident is not None and options.resident < fit
                return (options.resident or fit, f"as asked for; {fit} would fit") if bounded else (fit, why)

            arrangement = arranged(bound, fused.fusion, options, workers)
            placement, phases, work = arrangement.placement, arrangement.phases, arrangement.work
        else:
            placement = place(bound, options.grid, resident, rebuilt, dict(options.constants))
            lowering = replace(lowering, form=form_of_one(bound, schedule, placement.grid))
        if placement.bound is not bound:
            bound = placement.bound
            checks = met(bound, promises=options.host_checks)
        loaded = load(bound.module, bound.unit, lowering, device, context)
        _fitting(bound, loaded)
        held = loaded.ctas_per_sm * multiprocessors
        if fused is None:
            work = work_of(bound, schedule, placement.grid, min(held, options.resident or held))
        notes: tuple[str, ...] = ()
        if lowering.instrument == RACES:
            checks += detection.checks(bound)
            notes = detection.notes(bound)
        elif lowering.form is None:
            chosen = staying(bound, placement.grid, options.keep)
            loaded, notes = _kept(bound, loaded, chosen, lowering, (device, context), placement.grid, multiprocessors)
        checks += placement.checks
        if lowering.vectors and loaded.compiled.emitted.wide:
            checks.append(Check("16-byte accesses", "all bases are aligned", None))
        mapped = dict.fromkeys(a.name for a in loaded.compiled.emitted.arguments if a.kind == "map")
        if mapped:
            named = " and ".join(f"`{name}`" for name in mapped)
            checks.append(Check("bulk copies", f"a tensor map of {named} goes with the launch", None))
        timeout, source = _timeout(kernel, options, loaded)
        made = Plan(
            kernel=kernel.name,
            device=f"cuda:{device} ({driver.device_name(device)})",
            grid=placement.grid,
            grid_source=placement.source,
            block=bound.program.launch.threads,
            constants={name: constant.value for name, constant in bound.program.constants.items()},
            schedule=work.kind,
            shared_bytes=loaded.shared_bytes,
            registers=loaded.registers,
            ctas_per_sm=loaded.ctas_per_sm,
            limiter=loaded.limiter,
            resident=held,
            timeout_s=timeout,
            timeout_source=source,
            checks=tuple(checks),
            notes=(*_in_spite_of(kernel, options), *placement.notes, *notes, *notes_of(work, schedule.l2_group, held)),
            l2_group=schedule.l2_group,
            workers=work.workers,
            tiles=work.blocks,
            rounds=work.longest,
            phases=phases,
        )
    return Ready(kernel, bound, loaded, made, work, device, context, tuple(sorted(barrier_tensors(bound.program))))


def instrumented(ready: Ready, instrument: str) -> Ready:
    """The same launch, with an instrument in its code, whose buffers the caller brings. It gets as many registers as
    leave as many CTAs resident as the code without has. Raises LaunchError where that cannot be."""
    bound, plain = ready.bound, ready.loaded
    with driver.on(ready.device) as context:
        options = replace(plain.options, instrument=instrument)
        loaded = load(bound.module, bound.unit, options, ready.device, context)
        if loaded.ctas_per_sm < plain.ctas_per_sm:
            options = replace(options, together=plain.ctas_per_sm)
            loaded = load(bound.module, bound.unit, options, ready.device, context)
        held = loaded.ctas_per_sm * driver.multiprocessors(ready.device)
        if loaded.compiled.emitted.cooperative and held < ready.work.workers:
            raise refusal(
                bound.module, bound.unit, "not-resident",
                f"with what is written down besides, {held} blocks are resident, and {ready.work.workers} are launched",
                None, help="launch fewer blocks with `grid`",
            )  # fmt: skip
    return replace(ready, loaded=loaded)


def lowering_for(bound: Bound, options: LaunchOptions, arch: str) -> Options:
    """What code for these arguments is specialised on, where their bases are aligned. No device is asked."""
    lowering = Options(
        arch=arch, vectors=True, debug=options.debug or "bounds" in options.detect, guards=not options.host_checks,
        pitched=tuple(name for name, held in bound.tensors.items() if _is_pitched(held)),
        multiples=multiples_of(bound.program, bound.dims),
        maps=all(0 < extent <= driver.MOST_MAPPED for held in bound.tensors.values() for extent in held.shape),
    )  # fmt: skip
    if "races" in options.detect:
        lowering = replace(lowering, instrument=RACES)
    if isinstance(bound.program, FusedProgram):
        lowering = replace(lowering, form=form_for(bound, bound.program.fusion, options))
    return lowering


def resident_blocks(kernel: Kernel, program: Program, device: int) -> int:
    """How many CTAs of a kernel a device holds at once."""
    if not 0 <= device < driver.device_count():
        raise LaunchError(f"there is no CUDA device {device}: {driver.device_count()} answer")
    module, unit = kernel.analysed({name: c.value for name, c in program.constants.items()})
    with driver.on(device) as context:
        loaded = load(module, unit, Options(arch=arch(device)), device, context)
        return loaded.ctas_per_sm * driver.multiprocessors(device)


def _kept(
    bound: Bound, loaded: Loaded, chosen: Staying, lowering: Options, place: tuple[int, driver.Context],
    grid: tuple[int, int, int], multiprocessors: int,
) -> tuple[Loaded, tuple[str, ...]]:  # fmt: skip
    """The kernel with its tiles on chip, where it holds some and the same grid is resident; and what to say of it."""
    if not chosen.keep:
        return loaded, chosen.notes
    blocks = grid[0] * grid[1] * grid[2]
    together = -(-blocks // multiprocessors)  # told nothing, the compiler spills rather than hold fewer CTAs
    kept = load(bound.module, bound.unit, replace(lowering, keep=chosen.keep, together=together), *place)
    held = kept.ctas_per_sm * multiprocessors
    if held < blocks:
        why = f"{kept.registers} registers a thread would leave {held} blocks resident, and {blocks} are launched"
    elif kept.compiled.local_bytes > loaded.compiled.local_bytes:
        why = "its registers would spill"
    else:
        return kept, chosen.notes
    names = ", ".join(f"`{name}`" for name, _ in chosen.keep)
    return loaded, (f"through memory at every barrier: {names}, as {why}",)


def _is_pitched(held: Given) -> bool:
    """Whether the rows of a matrix lie further apart than they are long."""
    if len(held.shape) != 2 or held.shape[0] <= 1 or 0 in held.shape:
        return False
    packed = held.shape[1] * held.strides[1] if held.shape[1] > 1 else SIZES[held.dtype]
    return held.strides[0] != packed


def _multiprocessors(bound: Bound, device: int, reserved: int) -> int:
    """Those of the current context that the caller leaves to the kernel. Raises LaunchError where none is left."""
    here = driver.multiprocessors(device)
    if reserved >= here:
        raise refusal(
            bound.module, bound.unit, None,
            f"`reserved_sms` is {reserved}, and cuda:{device} has {here} multiprocessors here", None,
            help=f"reserve at most {here - 1}",
        )  # fmt: skip
    return here - reserved


def _based(bound: Bound, lowering: Options, device: int, context: driver.Context) -> Options:
    """Without wide accesses where an array that would have them starts in between."""
    if all(held.pointer % WIDE_BYTES == 0 for held in bound.tensors.values()):
        return lowering
    loaded = load(bound.module, bound.unit, lowering, device, context)
    for name, size in loaded.compiled.emitted.wide.items():
        held = bound.tensors.get(name)
        if held is not None and held.pointer % size:
            return replace(lowering, vectors=False)
    return lowering


def _fitting(bound: Bound, loaded: Loaded) -> None:
    if loaded.ctas_per_sm == 0:
        raise refusal(
            bound.module, bound.unit, "not-resident",
            f"not one CTA of {loaded.compiled.emitted.threads} threads fits on a multiprocessor: it needs "
            f"{loaded.registers} registers a thread and {loaded.shared_bytes} bytes of shared memory", None,
            help="choose smaller tiles, or fewer threads with `@launch`",
        )  # fmt: skip


def _in_spite_of(kernel: Kernel, options: LaunchOptions) -> list[str]:
    """What an unchecked launch is told of the errors that would have stopped it."""
    against = gate.stopping(kernel.findings_at(dict(options.constants)), on_device=True) if options.unchecked else []
    places = [f"{finding.code} (line {line_at(kernel.text, finding.span.start)})" for finding in against]
    return [f"unchecked: launched in spite of {', '.join(dict.fromkeys(places))}"] if places else []


def _timeout(kernel: Kernel, options: LaunchOptions, loaded: Loaded) -> tuple[float | None, str]:
    if not loaded.compiled.emitted.watched:
        return None, ""
    if options.unchecked and not options.timeout:
        return SUSPECT_TIMEOUT_S, "of an unchecked launch, which has one always"
    if options.timeout is not None:
        return options.timeout or None, "as asked for" if options.timeout else ""
    if "deadlock" in options.detect:
        return SUSPECT_TIMEOUT_S, "as deadlocks are looked for"
    for code in kernel.codes_at(dict(options.constants)):
        if code in SUSPECT:
            return SUSPECT_TIMEOUT_S, f"because of {code}"
    return None, ""

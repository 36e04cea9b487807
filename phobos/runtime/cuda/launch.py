"""Launching: the seven steps before anything runs, then the launch itself, then what it left in its report.

1. the arrays, and that they lie on this device; 2. `@aligned`, and the bases of wide accesses; 3. that no two
arguments overlap where they must not; 4. the barrier tensor; 5. occupancy, asked of the loaded function on the
current device after its dynamic shared size was set; 6. grid constants, compiled again until they agree with it;
7. a cooperative launch for every kernel with a barrier. Each failure is an exception, and nothing has run.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from phobos.codegen import cards
from phobos.codegen.emitted import Argument
from phobos.errors import LaunchError
from phobos.lowering.options import MULTIPLE, RACES, Options
from phobos.runtime.arrays import SIZES
from phobos.runtime.binding import Bound, barrier_tensors, bind
from phobos.runtime.compiling import CompiledKernel, build
from phobos.runtime.conditions import aligned, apart, stored_tensors
from phobos.runtime.cuda import detection, driver
from phobos.runtime.cuda.reports import Channel
from phobos.runtime.cuda.streams import library_of, stream_of
from phobos.runtime.detections import demand_on_gpu
from phobos.runtime.faults import refusal
from phobos.runtime.fusing import arranged, form_for
from phobos.runtime.on_chip import Staying, staying
from phobos.runtime.placing import has_barrier, place
from phobos.runtime.plan import Check, PhasePlan, Plan
from phobos.runtime.scheduling import form_of_one, notes_of, possible, schedule_for, work_of
from phobos.semantics.fusion import FusedProgram
from phobos.semantics.program import Program
from phobos.semantics.schedules import Work
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.kernel import Kernel, LaunchOptions

ZERO_COUNTS = (0, 0x80000000)  # of a barrier's word between launches: an odd number of barriers leaves the top bit
SUSPECT = ("PH203", "PH204", "PH205", "PH215", "PH506", "PH508")
SUSPECT_TIMEOUT_S = 60.0


@value
class Loaded:
    """A compiled kernel on a device: its function, and what the driver says of it. `options`: as it was lowered."""

    compiled: CompiledKernel
    options: Options
    function: int
    registers: int
    shared_bytes: int
    ctas_per_sm: int
    limiter: str


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


# A function, an event and a stream belong to a context, memory to a device: every key below says which.
_loaded: dict[tuple[object, ...], Loaded] = {}
_channels: dict[tuple[object, ...], Channel] = {}
_seen_barriers: set[tuple[int, int]] = set()
_in_flight: dict[tuple[int, int], tuple[object, int, driver.Context]] = {}
"""(device, barrier address) -> (stream, event, context of the event)"""
_pending: dict[int, tuple[Channel, Bound, CompiledKernel, list[int], float | None]] = {}
_used: set[int] = set()  # devices on which something was launched
_locks: defaultdict[int, threading.RLock] = defaultdict(threading.RLock)  # of what is kept of a device: see `run`


# --- what the rest of the package calls ------------------------------------------------------------------


def plan(kernel: Kernel, bound: Bound, options: LaunchOptions) -> Plan:
    """Everything that a launch with these arguments would decide. Raises LaunchError."""
    return _prepare(kernel, bound, options).plan


def launch(kernel: Kernel, bound: Bound, options: LaunchOptions) -> Plan:
    """Launch on the arrays' device; does not wait. Raises LaunchError, and KernelFault for what an earlier launch
    of this kernel on this stream left in its report."""
    return launched(kernel, bound, options).plan


def launched(kernel: Kernel, bound: Bound, options: LaunchOptions) -> Ready:
    """As `launch`; gives all that was decided."""
    ready = _prepare(kernel, bound, options)
    if ready.work.workers:
        with driver.on(ready.device):
            run(ready, stream_of(options.stream, library_of(bound), ready.device))
    return ready


def prepared(kernel: Kernel, bound: Bound, options: LaunchOptions) -> Ready:
    """All that is decided before a launch, which `run` then makes, any number of times. Raises LaunchError."""
    return _prepare(kernel, bound, options)


def instrumented(ready: Ready, instrument: str) -> Ready:
    """The same launch, with an instrument in its code, whose buffers the caller brings. It gets as many registers as
    leave as many CTAs resident as the code without has. Raises LaunchError where that cannot be."""
    bound, plain = ready.bound, ready.loaded
    with driver.on(ready.device) as context:
        options = replace(plain.options, instrument=instrument)
        loaded = _load(bound.module, bound.unit, options, ready.device, context)
        if loaded.ctas_per_sm < plain.ctas_per_sm:
            options = replace(options, together=plain.ctas_per_sm)
            loaded = _load(bound.module, bound.unit, options, ready.device, context)
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
        multiples=tuple(sorted(name for name, extent in bound.dims.items() if extent % MULTIPLE == 0)),
        maps=all(0 < extent <= driver.MOST_MAPPED for held in bound.tensors.values() for extent in held.shape),
    )  # fmt: skip
    if "races" in options.detect:
        lowering = replace(lowering, instrument=RACES)
    if isinstance(bound.program, FusedProgram):
        lowering = replace(lowering, form=form_for(bound, bound.program.fusion, options))
    return lowering


def synchronize(device: int | None = None) -> None:
    """Wait for everything launched, on one device or on all, and raise KernelFault where a kernel was stopped."""
    for number in sorted(_used) if device is None else (device,):
        with driver.on(number):
            driver.synchronize()
        with _locks[number]:
            for key, (channel, *_) in list(_pending.items()):
                if channel.device == number:
                    _look(key)


def stream_number(options: LaunchOptions, bound: Bound, device: int) -> int:
    """The stream that a launch with these options would go to."""
    return stream_of(options.stream, library_of(bound), device)


def resident_blocks(kernel: Kernel, program: Program, device: int) -> int:
    """How many CTAs of a kernel a device holds at once."""
    if not 0 <= device < driver.device_count():
        raise LaunchError(f"there is no CUDA device {device}: {driver.device_count()} answer")
    module, unit = kernel.analysed({name: c.value for name, c in program.constants.items()})
    with driver.on(device) as context:
        loaded = _load(module, unit, Options(arch=arch(device)), device, context)
        return loaded.ctas_per_sm * driver.multiprocessors(device)


# --- before the launch -----------------------------------------------------------------------------------


def arch(device: int) -> str:
    """The architecture that code for a device is compiled for."""
    return cards.arch_of(*driver.capability(device))


def _load(module: Any, unit: Any, options: Options, device: int, context: driver.Context) -> Loaded:
    """Compiled, loaded, its dynamic shared size set, and then its occupancy asked: of this function, here."""
    with _locks[device]:
        return _load_once(module, unit, options, device, context)


def _load_once(module: Any, unit: Any, options: Options, device: int, context: driver.Context) -> Loaded:
    key = (unit.program, options.key, device, context)
    if key in _loaded:
        return _loaded[key]
    made = build(module, unit, options)
    emitted = made.emitted
    function = driver.load(made.cubin, emitted.symbol)
    if emitted.dynamic_shared_bytes:
        driver.allow_dynamic_shared(function, emitted.dynamic_shared_bytes)
    resident = driver.ctas_per_multiprocessor(function, emitted.threads, emitted.dynamic_shared_bytes)
    registers = driver.function_attribute(function, driver.FUNCTION_REGISTERS)
    shared = driver.function_attribute(function, driver.FUNCTION_STATIC_SHARED) + emitted.dynamic_shared_bytes
    limits = cards.LIMITS.get(options.arch)
    limiter = made.occupancy(limits).limiter if limits is not None else "the device"
    _loaded[key] = loaded = Loaded(made, options, function, registers, shared, resident, limiter)
    return loaded


def _prepare(kernel: Kernel, bound: Bound, options: LaunchOptions) -> Ready:
    fused = bound.program if isinstance(bound.program, FusedProgram) else None
    schedule = schedule_for(options.schedule, options.l2_group)
    possible(bound, schedule)
    demand_on_gpu(options.detect, options.timeout)
    device = int(bound.device.partition(":")[2] or 0)
    checks = aligned(bound) if options.host_checks else []
    with driver.on(device) as context:
        multiprocessors = max(driver.multiprocessors(device) - options.reserved_sms, 1)
        lowering = _based(bound, lowering_for(bound, options, arch(device)), device, context)
        if lowering.instrument == RACES and (bound.program.is_persistent or schedule.is_persistent or fused):
            plain = _load(bound.module, bound.unit, replace(lowering, instrument=""), device, context)
            lowering = replace(lowering, together=plain.ctas_per_sm)  # so that the grid is that of a launch without

        def resident(program: Program) -> tuple[int, str]:
            module, unit = kernel.analysed({name: c.value for name, c in program.constants.items()})
            loaded = _load(module, unit, lowering, device, context)
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
        bound = placement.bound
        loaded = _load(bound.module, bound.unit, lowering, device, context)
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
        checks += apart(bound)
        _writeable(bound)
        if lowering.vectors and loaded.compiled.emitted.wide:
            checks.append(Check("16-byte accesses", "all bases are aligned", None))
        mapped = dict.fromkeys(a.name for a in loaded.compiled.emitted.arguments if a.kind == "map")
        if mapped:
            named = " and ".join(f"`{name}`" for name in mapped)
            checks.append(Check("bulk copies", f"a tensor map of {named} goes with the launch", None))
        barriers = tuple(sorted(barrier_tensors(bound.program)))
        checks += [
            Check(
                f"barrier tensor `{name}`",
                "supplied by the runtime" if name in bound.supplied else "i32, brought",
                None,
            )
            for name in barriers
        ]
        _barrier_shapes(bound, barriers)
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
            notes=(*placement.notes, *notes, *notes_of(work, schedule.l2_group, held)),
            l2_group=schedule.l2_group,
            workers=work.workers,
            tiles=work.blocks,
            rounds=work.longest,
            phases=phases,
        )
    return Ready(kernel, bound, loaded, made, work, device, context, barriers)


def _kept(
    bound: Bound, loaded: Loaded, chosen: Staying, lowering: Options, place: tuple[int, driver.Context],
    grid: tuple[int, int, int], multiprocessors: int,
) -> tuple[Loaded, tuple[str, ...]]:  # fmt: skip
    """The kernel with its tiles on chip, where it holds some and the same grid is resident; and what to say of it."""
    if not chosen.keep:
        return loaded, chosen.notes
    blocks = grid[0] * grid[1] * grid[2]
    together = -(-blocks // multiprocessors)  # told nothing, the compiler spills rather than hold fewer CTAs
    kept = _load(bound.module, bound.unit, replace(lowering, keep=chosen.keep, together=together), *place)
    held = kept.ctas_per_sm * multiprocessors
    if held < blocks:
        why = f"{kept.registers} registers a thread would leave {held} blocks resident, and {blocks} are launched"
    elif kept.compiled.local_bytes > loaded.compiled.local_bytes:
        why = "its registers would spill"
    else:
        return kept, chosen.notes
    names = ", ".join(f"`{name}`" for name, _ in chosen.keep)
    return loaded, (f"through memory at every barrier: {names}, as {why}",)


def _is_pitched(held: Any) -> bool:
    if len(held.shape) != 2 or held.shape[0] <= 1 or 0 in held.shape:
        return False
    return (
        bool(held.strides[0] != held.shape[1] * held.strides[1])
        if held.shape[1] > 1
        else (held.strides[0] != _size(held))
    )


def _size(held: Any) -> int:
    return SIZES[held.dtype]


def _based(bound: Bound, lowering: Options, device: int, context: driver.Context) -> Options:
    """Without wide accesses where an array that would have them starts in between."""
    if all(held.pointer % 16 == 0 for held in bound.tensors.values()):
        return lowering
    loaded = _load(bound.module, bound.unit, lowering, device, context)
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


def _writeable(bound: Bound) -> None:
    for name in stored_tensors(bound.program):
        held = bound.tensors.get(name)
        if held is not None and not held.writeable:
            raise refusal(
                bound.module, bound.unit, None, f"argument `{name}` is read-only, but the kernel stores to it",
                bound.program.tensors[name].span,
            )  # fmt: skip


def _barrier_shapes(bound: Bound, barriers: tuple[str, ...]) -> None:
    for name in barriers:
        held = bound.tensors.get(name)
        if held is None:
            continue
        if held.dtype != "i32" or not held.shape or held.shape[0] < 2 or any(n != 1 for n in held.shape[1:]):
            raise _bad_barrier(
                bound, name, f"has shape {held.shape} of {held.dtype}, at least 2 elements of i32 are needed"
            )


def _bad_barrier(bound: Bound, name: str, wrong: str) -> LaunchError:
    return refusal(
        bound.module, bound.unit, "bad-barrier-tensor", f"barrier tensor `{name}` {wrong}",
        bound.program.tensors[name].span,
        help="leave it out and the runtime supplies one, or pass a zeroed i32 array of 2 elements",
    )  # fmt: skip


def _timeout(kernel: Kernel, options: LaunchOptions, loaded: Loaded) -> tuple[float | None, str]:
    if not loaded.compiled.emitted.watched:
        return None, ""
    if options.timeout is not None:
        return options.timeout or None, "as asked for" if options.timeout else ""
    if "deadlock" in options.detect:
        return SUSPECT_TIMEOUT_S, "as deadlocks are looked for"
    for code in kernel.codes:
        if code in SUSPECT:
            return SUSPECT_TIMEOUT_S, f"because of {code}"
    return None, ""


# --- the launch ------------------------------------------------------------------------------------------


def run(ready: Ready, stream: int) -> None:
    """Enqueue a prepared launch, in the context it was prepared in.

    Threads may launch at once: what is kept of a device is touched under its own lock, so that no device waits for
    another.
    """
    if not ready.work.workers:
        return
    theirs = driver.device_of_stream(stream)
    if theirs is not None and theirs != ready.device:
        bound = ready.bound
        raise refusal(
            bound.module, bound.unit, None, f"`stream` is one of cuda:{theirs}, the arrays are on cuda:{ready.device}",
            None, help="pass a stream of the arrays' device",
        )  # fmt: skip
    with _locks[ready.device]:
        _enqueue(ready, stream)


def _enqueue(ready: Ready, stream: int) -> None:
    loaded = ready.loaded
    emitted = loaded.compiled.emitted
    capturing = driver.is_capturing(stream)
    if capturing and detection.looks(emitted):
        raise refusal(
            ready.bound.module, ready.bound.unit, None, "a launch that looks for races cannot be captured into a graph",
            None,
        )  # fmt: skip
    channel = None
    if emitted.watched:
        key = (ready.device, ready.context, _order(stream), loaded.function)
        if key not in _channels:
            if capturing:
                _exchange_capture(True)
            try:
                _channels[key] = Channel(ready.device, len(ready.barriers))
            finally:
                if capturing:
                    _exchange_capture(False)
        channel = _channels[key]
        if not capturing:
            _look(id(channel))
    addresses = _barrier_addresses(ready, channel, stream, capturing)
    if detection.looks(emitted):
        assert channel is not None
        _looking(ready, stream, channel, addresses)
        return
    _send(ready, stream, channel, addresses, capturing, None)


def _looking(ready: Ready, stream: int, channel: Channel, addresses: dict[str, int]) -> None:
    """A launch that looks for races: it is waited for, as its shadows are its own."""
    shadows = detection.Shadows(ready, channel, next(iter(addresses.values()), channel.barrier(0)), stream)
    try:
        _send(ready, stream, channel, addresses, False, shadows)
        driver.synchronize_stream(stream)
        channel.races = shadows.seen()
        _look(id(channel))
    finally:
        shadows.free()


def _send(
    ready: Ready, stream: int, channel: Channel | None, addresses: dict[str, int], capturing: bool,
    shadows: detection.Shadows | None,
) -> None:  # fmt: skip
    bound, loaded = ready.bound, ready.loaded
    emitted = loaded.compiled.emitted
    arguments = [_argument(a, ready, channel, addresses, shadows) for a in emitted.arguments]
    pointers = (ctypes.c_void_p * max(len(arguments), 1))(*(ctypes.addressof(a) for a in arguments))
    grid = ready.work.launched
    try:
        driver.launch(
            loaded.function, grid, emitted.threads, emitted.dynamic_shared_bytes, stream, pointers, emitted.cooperative
        )
    except driver.DriverError as error:
        raise refusal(
            bound.module, bound.unit, "not-resident" if error.status == 720 else None,
            f"the driver refused to launch a grid of {grid} blocks: {error}", None,
        ) from None  # fmt: skip
    _used.add(ready.device)
    if channel is not None:
        _pending[id(channel)] = (channel, bound, loaded.compiled, list(addresses.values()), ready.plan.timeout_s)
    for name in ready.barriers:
        if name in bound.tensors and not capturing:
            place_ = (ready.device, addresses[name])
            other = _in_flight.get(place_)
            mine = other is not None and other[2] == ready.context
            event = other[1] if other is not None and mine else driver.new_event(timing=False)
            driver.record(event, stream)
            _in_flight[place_] = (_order(stream), event, ready.context)


def _order(stream: int) -> object:
    """Equal for launches that wait for one another by their stream: each thread has one of its own by that name."""
    if stream == driver.PER_THREAD_STREAM:
        return stream, threading.get_ident()
    return 0 if stream == driver.LEGACY_STREAM else stream


def _exchange_capture(relaxed: bool) -> None:
    """Allocating is allowed while another call of this thread captures a graph."""
    mode = ctypes.c_int(2 if relaxed else 0)
    driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))


def _look(key: int) -> None:
    """Raise what a report says, after making it ready again."""
    if key not in _pending:
        return
    channel, bound, made, addresses, seconds = _pending[key]
    if not channel.stopped:
        return
    with driver.on(channel.device):
        driver.synchronize()
    fault = channel.fault(bound, made.emitted.sites, seconds)
    channel.clear(addresses, 0)
    del _pending[key]
    raise fault


def _barrier_addresses(ready: Ready, channel: Channel | None, stream: int, capturing: bool) -> dict[str, int]:
    addresses: dict[str, int] = {}
    for index, name in enumerate(ready.barriers):
        held = ready.bound.tensors.get(name)
        if held is None:
            assert channel is not None
            addresses[name] = channel.barrier(index)
            continue
        addresses[name] = held.pointer
        place_ = (ready.device, held.pointer)
        other = _in_flight.get(place_)
        if other is not None and other[0] != _order(stream) and not capturing and not driver.is_done(other[1]):
            raise _bad_barrier(ready.bound, name, "is in use by a launch on another stream that has not ended")
        if place_ not in _seen_barriers and not capturing:
            driver.synchronize_stream(stream)
            count = driver.read_words(held.pointer, 1)[0]
            if count not in ZERO_COUNTS:
                raise _bad_barrier(
                    ready.bound, name, f"starts with {count}, its count must be 0 before the first launch"
                )
            _seen_barriers.add(place_)
    return addresses


@functools.lru_cache(maxsize=256)
def _map(pointer: int, dtype: str, shape: tuple[int, ...], rows: int, columns: int) -> Any:
    """The map of a plain matrix. It says where the cells are, not what they hold, so it stays true."""
    return driver.encode_map(pointer, dtype, (shape[0], shape[1]), shape[1] * SIZES[dtype], (rows, columns))


def _argument(
    argument: Argument, ready: Ready, channel: Channel | None, addresses: dict[str, int],
    shadows: detection.Shadows | None,
) -> Any:  # fmt: skip
    bound = ready.bound
    match argument.kind:
        case "races":
            assert shadows is not None
            return ctypes.c_uint64(shadows.pointer)
        case "shadow":
            assert shadows is not None
            return ctypes.c_uint64(shadows.rows[argument.name])
        case "cells":
            assert shadows is not None
            return ctypes.c_longlong(shadows.counts[argument.name])
        case "tensor":
            held = bound.tensors.get(argument.name)
            return ctypes.c_uint64(addresses[argument.name] if held is None else held.pointer)
        case "scalar":
            number = bound.params[argument.name]
            if argument.ctype == "float":
                return ctypes.c_float(number)
            return ctypes.c_double(number) if argument.ctype == "double" else ctypes.c_longlong(int(number))
        case "dim":
            return ctypes.c_longlong(bound.dims[argument.name])
        case "pitch":
            held = bound.tensors[argument.name]
            return ctypes.c_longlong(held.strides[0] // _size(held))
        case "grid":
            root, axis = argument.name.split()
            roots = [root for phase in ready.work.phases for root in phase.roots]
            return ctypes.c_uint(roots[int(root)].grid["xyz".index(axis)])
        case "map":
            held = bound.tensors[argument.name]
            rows, columns = argument.box
            return _map(held.pointer, held.dtype, held.shape, rows, columns)
        case "word":
            assert channel is not None
            return ctypes.c_uint64(next(iter(addresses.values()), channel.barrier(0)))
        case "report":
            assert channel is not None
            return ctypes.c_uint64(channel.there)
        case "timeout":
            seconds = ready.plan.timeout_s
            return ctypes.c_ulonglong(int(seconds * 1e9) if seconds else 0)
        case "buffer":
            return ctypes.c_uint64(dict(ready.buffers)[argument.name])
        case "groups":
            assert channel is not None
            return ctypes.c_uint64(channel.groups(ready.work.workers))


__all__ = ["Ready", "has_barrier", "launch", "plan", "resident_blocks", "synchronize"]

"""Launching what was prepared, waiting for it, and what it left in its report."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from phobos.runtime.binding import Bound
from phobos.runtime.compiling import CompiledKernel
from phobos.runtime.conditions import bad_barrier
from phobos.runtime.cuda import detection, driver
from phobos.runtime.cuda.calls import Call, Repeated
from phobos.runtime.cuda.loading import locks
from phobos.runtime.cuda.preparing import Ready, prepared
from phobos.runtime.cuda.reports import MOST_PLACES, Channel
from phobos.runtime.cuda.streams import stream_for
from phobos.runtime.faults import refusal
from phobos.runtime.plan import Plan

if TYPE_CHECKING:
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.options import LaunchOptions

ZERO_COUNTS = (0, 0x80000000)  # of a barrier's word between launches: an odd number of barriers leaves the top bit

# An event and a stream belong to a context, memory to a device: every key below says which.
_channels: dict[tuple[object, ...], Channel] = {}
_seen_barriers: dict[tuple[int, int], Callable[[], object]] = {}
"""(device, barrier address) -> a weak reference to the array whose count was seen to be 0: memory that was freed may
hold anything when it is given out again"""
_in_flight: dict[tuple[int, int], tuple[object, int, driver.Context]] = {}
"""(device, barrier address) -> (stream, event, context of the event)"""
_pending: dict[int, tuple[Channel, Bound, CompiledKernel, list[int], float | None]] = {}
_used: set[int] = set()  # devices on which something was launched


def plan(kernel: Kernel, bound: Bound, options: LaunchOptions) -> Plan:
    """Everything that a launch with these arguments would decide. Raises LaunchError."""
    return prepared(kernel, bound, options).plan


def launch(kernel: Kernel, bound: Bound, options: LaunchOptions) -> Plan:
    """Launch on the arrays' device; does not wait. Raises LaunchError, and KernelFault for what an earlier launch
    of this kernel on this stream left in its report."""
    return launched(kernel, bound, options).plan


def launched(kernel: Kernel, bound: Bound, options: LaunchOptions) -> Ready:
    """As `launch`; gives all that was decided."""
    ready = prepared(kernel, bound, options)
    if ready.work.workers:
        with driver.on(ready.device):
            run(ready, stream_for(options, bound, ready.device))
    return ready


def run(ready: Ready, stream: int, known: Repeated | None = None, *, is_current: bool = False) -> None:
    """Enqueue a prepared launch, in the context it was prepared in; as what is `known` of it, where that is something.

    Threads may launch at once: what is kept of a device is touched under its own lock, so that no device waits for
    another. `is_current`: the stream is the current one of the device, and need not be looked at.
    """
    if not ready.work.workers:
        return
    theirs = None if is_current else driver.device_of_stream(stream)
    if theirs is not None and theirs != ready.device:
        bound = ready.bound
        raise refusal(
            bound.module, bound.unit, None, f"`stream` is one of cuda:{theirs}, the arrays are on cuda:{ready.device}",
            None, help="pass a stream of the arrays' device",
        )  # fmt: skip
    with locks[ready.device]:
        _enqueue(ready, stream, known)


def synchronize(device: int | None = None) -> None:
    """Wait for everything launched, on one device or on all, and raise KernelFault where a kernel was stopped."""
    for number in sorted(_used) if device is None else (device,):
        with driver.on(number):
            driver.synchronize()
        with locks[number]:
            for key, (channel, *_) in list(_pending.items()):
                if channel.device == number:
                    _look(key)


def _enqueue(ready: Ready, stream: int, known: Repeated | None) -> None:
    loaded = ready.loaded
    emitted = loaded.compiled.emitted
    capture = driver.capture_of(stream) if emitted.watched else None
    capturing = capture is not None
    if capturing and detection.looks(emitted):
        raise refusal(
            ready.bound.module, ready.bound.unit, None, "a launch that looks for races cannot be captured into a graph",
            None,
        )  # fmt: skip
    channel = None
    if emitted.watched:
        # A graph is replayed on any stream, beside what its stream does by then and beside other graphs.
        key = (ready.device, ready.context, _order(stream), loaded.function, capture)
        if key not in _channels:
            _channels[key] = Channel(ready.device, len(ready.barriers), _most_blocks(ready))
        channel = _channels[key]
        if not capturing:
            _look(id(channel))
    addresses = _barrier_addresses(ready, channel, stream, capturing)
    if detection.looks(emitted):
        assert channel is not None
        _looking(ready, stream, channel, addresses)
        return

    def made() -> Call:
        return Call(ready, channel, addresses)

    call = made() if known is None else known.call(id(channel), made)
    _send(ready, stream, channel, addresses, capturing, call)


def _looking(ready: Ready, stream: int, channel: Channel, addresses: dict[str, int]) -> None:
    """A launch that looks for races: it is waited for, as its shadows are its own."""
    shadows = detection.Shadows(ready, channel, next(iter(addresses.values()), channel.barrier(0)), stream)
    try:
        _send(ready, stream, channel, addresses, False, Call(ready, channel, addresses, shadows))
        driver.synchronize_stream(stream)
        channel.races = shadows.seen()
        _look(id(channel))
    finally:
        shadows.free()


def _send(
    ready: Ready, stream: int, channel: Channel | None, addresses: dict[str, int], capturing: bool, call: Call
) -> None:
    bound, loaded = ready.bound, ready.loaded
    try:
        call.send(stream)
    except driver.DriverError as error:
        raise refusal(
            bound.module, bound.unit, "not-resident" if error.status == 720 else None,
            f"the driver refused to launch a grid of {ready.work.launched} blocks: {error}", None,
        ) from None  # fmt: skip
    _used.add(ready.device)
    if channel is not None:
        # A report is read at the next launch or never: until then nobody's memory is held for it.
        told = bound.without_arrays
        _pending[id(channel)] = (channel, told, loaded.compiled, list(addresses.values()), ready.plan.timeout_s)
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


def _most_blocks(ready: Ready) -> int:
    """Blocks of the largest grid that a launch of this function in this context can have, as far as that is known."""
    if not ready.loaded.compiled.emitted.cooperative:
        return MOST_PLACES
    return ready.loaded.ctas_per_sm * driver.multiprocessors(ready.device)


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
    raise fault  # it stays pending: a captured launch may be replayed, and stopped again


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
            raise bad_barrier(ready.bound, name, "is in use by a launch on another stream that has not ended")
        seen = _seen_barriers.get(place_)
        if not capturing and (seen is None or (held.array is not None and seen() is not held.array)):
            driver.synchronize_stream(stream)
            count = driver.read_words(held.pointer, 1)[0]
            if count not in ZERO_COUNTS:
                raise bad_barrier(
                    ready.bound, name, f"starts with {count}, its count must be 0 before the first launch"
                )
            _seen_barriers[place_] = weakly(held.array)
    return addresses


def weakly(array: object) -> Callable[[], object]:
    """A weak reference; of what takes none, one that is dead already, so that it is looked at every time."""
    try:
        return weakref.ref(array)
    except TypeError:
        return lambda: None


__all__ = ["Ready", "launch", "launched", "plan", "prepared", "run", "synchronize", "weakly"]

"""A trace on a device: the kernel with marks in its code, launched, and what it wrote down read back.

The kernel without marks is timed beside it, so that the trace can say what it costs. The clock is the device's global
timer, which all multiprocessors share; how far apart its ticks are is measured on the card.
"""

from __future__ import annotations

import ctypes
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from phobos.codegen import cache
from phobos.codegen.device import pieces_for
from phobos.lowering.options import TRACE
from phobos.runtime.binding import Bound
from phobos.runtime.conditions import stored_tensors
from phobos.runtime.cuda import driver, host, launch, measure
from phobos.runtime.cuda.loading import arch
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.cuda.preparing import Ready, instrumented, prepared
from phobos.runtime.device import number_of
from phobos.runtime.tracing.places import barrier_at, between, of_phases
from phobos.runtime.tracing.trace import Cost, Tiles, Trace
from phobos.runtime.tracing.words import grouped
from phobos.semantics.fusion import FusedProgram
from phobos.value import replace

if TYPE_CHECKING:
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.options import LaunchOptions
    from phobos.runtime.reference.numbers import Array

HEAD, OWN, EACH = 16, 4, 3  # words of 8 bytes: of the buffer, of a CTA, of an interval
MOST_CTAS = 1 << 20  # that are written down
MOST_INTERVALS = 1 << 16  # of a CTA
READINGS = 4096
BARRIERS = ("barrier", "phase")
CLOCK = "ph_clock"


def traced(
    kernel: Kernel, bound: Bound, options: LaunchOptions, device: str, repeat: int, room: int
) -> tuple[Trace, dict[str, Array]]:  # fmt: skip
    """Trace a launch with these host arrays, which stay as they are, keeping at most `room` bytes of it; and the arrays
    as that launch left them. Raises LaunchError, KernelFault."""
    number = number_of(device)
    copies, there = host.moved(bound, number)
    with driver.on(number):
        plain = prepared(kernel, there, options)
        with_marks = instrumented(plain, TRACE)
        stream = driver.new_stream()
        first, last = driver.new_event(timing=True), driver.new_event(timing=True)
        stored = [name for name in stored_tensors(bound.program) if name in copies]
        given = {name: DeviceArray(bound.tensors[name].array, number) for name in stored}

        def restored() -> None:
            for name in stored:
                driver.copy_within(copies[name].pointer, given[name].pointer, given[name].nbytes, stream)

        def elapsed(graph: int) -> float:
            restored()
            driver.record(first, stream)
            driver.launch_graph(graph, stream)
            driver.record(last, stream)
            took = driver.elapsed_ms(first, last)
            launch.synchronize(number)
            return took

        workers = plain.work.workers
        ctas = min(workers, MOST_CTAS)
        intervals = 0
        if any(site.what in (*BARRIERS, "block") for site in with_marks.loaded.compiled.emitted.sites):
            intervals = int(np.clip((room // max(ctas, 1) // 8 - OWN) // EACH, 1, MOST_INTERVALS))
        words = np.zeros(HEAD + ctas * (OWN + EACH * intervals), np.uint64)
        words[:2] = intervals, ctas
        buffer = DeviceArray(words, number)
        with_marks = replace(with_marks, buffers=((TRACE, buffer.pointer),))
        spans: list[tuple[int, Array]] = []
        plain_ms = traced_ms = 0.0
        if workers:
            plain_ms = median(measure.of_launch(plain, stream, elapsed, repeat))
            traced_ms = median(measure.of_launch(with_marks, stream, elapsed, repeat))
        for _ in range(min(repeat, 3) if workers else 0):
            buffer.put(words)
            restored()
            launch.run(with_marks, stream)
            launch.synchronize(number)
            told = buffer.numpy()
            own = told[HEAD:].reshape(ctas, -1)
            spans.append((int(own[:, 1].max() - own[:, 0].min()), told))
        if spans:
            words = sorted(spans, key=lambda one: one[0])[len(spans) // 2][1]
        results = {name: copy.numpy() for name, copy in copies.items()}
        resolution = ticks(number)
    cost = Cost(plain_ms, traced_ms, plain.loaded.registers, with_marks.loaded.registers)
    return _told(kernel, plain, with_marks, words, resolution, cost), results


def ticks(device: int) -> int:
    """Nanoseconds between two ticks of the device's clock: the least by which it was seen to go on."""
    text = pieces_for("ph_now") + (
        f'\nextern "C" __global__ void {CLOCK}(unsigned long long* out, unsigned count) {{\n'
        "  for (unsigned i = 0; i < count; ++i) out[i] = ph_now();\n}\n"
    )
    made = cache.compiled(text, "clock.cu", arch(device), [])
    seen = DeviceArray(np.zeros(READINGS, np.uint64), device)
    function = driver.load(made.cubin, CLOCK)
    arguments = (ctypes.c_uint64(seen.pointer), ctypes.c_uint(READINGS))
    pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(a) for a in arguments))
    driver.launch(function, (1, 1, 1), 1, 0, 0, pointers, False)
    steps = np.diff(seen.numpy().astype(np.int64))
    went_on = steps[steps > 0]
    return int(np.gcd.reduce(went_on)) if went_on.size else 1


def _told(
    kernel: Kernel, plain: Ready, ready: Ready, words: Array, resolution: int, cost: Cost
) -> Trace:  # fmt: skip
    bound, sites = ready.bound, ready.loaded.compiled.emitted.sites
    room, ctas = int(words[0]), int(words[1])
    own = words[HEAD:].reshape(ctas, OWN + EACH * room)
    zero = int(own[:, 0].min()) if ctas else 0
    start, end = ((own[:, n] - np.uint64(zero)).astype(np.int64) for n in range(2))
    made = own[:, 3].astype(np.int64)
    kept = np.minimum(made, room)
    intervals = own[:, OWN:].reshape(ctas, room, EACH)
    there = np.arange(room)[None, :] < kept[:, None]
    place = (intervals[:, :, 2] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    number = (intervals[:, :, 2] >> np.uint64(32)).astype(np.int64)
    since, until = ((intervals[:, :, n] - np.uint64(zero)).astype(np.int64) for n in range(2))
    what = np.asarray([site.what in BARRIERS for site in sites] or [False])
    at_barrier = there & what[np.where(there, place, 0)]
    crossings = int(at_barrier.sum(axis=1).min()) if ctas else 0
    chosen = np.argsort(~at_barrier, axis=1, kind="stable")[:, :crossings]
    arrived, left = (np.take_along_axis(part, chosen, axis=1) for part in (since, until))
    crossed = np.take_along_axis(place, chosen, axis=1)[0].tolist() if ctas else []
    complete = bool((made <= room).all())
    lost = []
    if not complete:
        more, most = grouped(int((made - kept).max())), grouped(room)
        lost.append(f"{more} more marks of a block (barriers crossed, tiles begun): there is room for {most}")
    if ctas < ready.work.workers:
        lost.append(f"{grouped(ready.work.workers - ctas)} more blocks: there is room for {grouped(ctas)}")
    if isinstance(bound.program, FusedProgram):
        stretches, order = of_phases(bound, crossings, complete)
    else:
        barriers = [barrier_at(bound, sites[n].span, sites[n].calls) for n in crossed]
        stretches, order = between(barriers, complete)
    tiles = _tiles(ready, there & ~at_barrier, place, number, since, until)
    return Trace(
        kernel=kernel.name, path=kernel.path, device=plain.plan.device, plan=plain.plan, unit="ns",
        resolution=resolution, start=start, end=end, arrived=arrived, left=left,
        processor=own[:, 2].astype(np.int64), stretches=stretches, order=order, complete=complete, tiles=tiles,
        lost=tuple(lost), cost=cost,
    )  # fmt: skip


def _tiles(
    ready: Ready, there: Array, place: Array, number: Array, since: Array, until: Array
) -> Tiles | None:  # fmt: skip
    """The virtual blocks that workers ran; a site names their kernel, and the numbers of a phase count through."""
    if not ready.work.is_persistent:
        return None
    sites = ready.loaded.compiled.emitted.sites
    first = np.asarray([start for phase in ready.work.phases for start in phase.starts], np.int64)
    names = {site.root: site.subject for site in sites if site.what == "block"}
    root = np.asarray([site.root for site in sites], np.int64)
    cta, column = np.nonzero(there)
    kernel = root[place[cta, column]]
    return Tiles(
        tuple(names[n] for n in sorted(names)), cta, kernel, number[cta, column] - first[kernel],
        since[cta, column], until[cta, column],
    )  # fmt: skip

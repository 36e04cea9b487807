"""A trace in the format that Perfetto and chrome://tracing read: complete events, named processes and threads.

A multiprocessor is a process and each place on it where a CTA may be resident a thread, so that CTAs that follow each
other on one place share a row; without multiprocessors there is one process. Times are in microseconds, as the format
wants them; in the reference runtime a step is shown as one microsecond.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from phobos import __version__
from phobos.runtime.tracing.sampling import chosen

if TYPE_CHECKING:
    from phobos.runtime.tracing.trace import Trace

MOST_EVENTS = 400_000  # a viewer takes them in a few seconds
DECIMALS = 3  # of a microsecond: nanoseconds
# The number of place 0. Perfetto takes a thread called 0, or as its process, for the process's main thread: it would
# stand first, and place 0 of multiprocessor 2 would share a row with place 2, whose overlapping slices are dropped.
FIRST_PLACE = 1000

Event = dict[str, Any]


def chrome(trace: Trace) -> dict[str, Any]:
    """A trace in the trace event format, which Perfetto and browsers show; times in microseconds."""
    per_cta = 2 * trace.crossings + 2
    if trace.tiles is not None and trace.blocks:
        per_cta += -(-len(trace.tiles.cta) // trace.blocks)
    kept = chosen(trace, max(MOST_EVENTS // per_cta, 1))
    events = [*_names(trace, kept), *_events(trace, kept), *_resident(trace)]
    other: dict[str, Any] = {
        "made by": f"Phobos tools {__version__}",
        "kernel": trace.kernel,
        "file": trace.path,
        "device": trace.device,
        "unit": "nanoseconds" if trace.unit == "ns" else "steps, each shown as a microsecond",
        "resolution": trace.resolution,
    }
    lost = list(trace.lost)
    if len(kept) < trace.blocks:
        lost.append(f"{trace.blocks - len(kept)} of {trace.blocks} {trace.noun}s are left out of this file")
    if lost:
        other["not kept"] = lost
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}


def _pid(trace: Trace, cta: int) -> int:
    return 0 if trace.processor is None else int(trace.processor[cta])


def _tid(trace: Trace, cta: int) -> int:
    return FIRST_PLACE + int(trace.lanes[cta])


def _names(trace: Trace, kept: list[int]) -> Iterator[Event]:
    several = np.bincount(trace.lanes).max(initial=0) > 1 if trace.processor is None else _shared(trace)
    places = sorted({(_pid(trace, cta), _tid(trace, cta)) for cta in kept})
    for pid in dict.fromkeys(pid for pid, _ in places):
        name = trace.kernel if trace.processor is None else f"multiprocessor {pid}"
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
    single = {} if several else {(_pid(trace, cta), _tid(trace, cta)): cta for cta in kept}
    for pid, tid in places:
        name = f"place {tid - FIRST_PLACE}" if several else f"{trace.noun} {single[pid, tid]}"
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}


def _shared(trace: Trace) -> bool:
    """Whether some place has more than one CTA."""
    assert trace.processor is not None
    places = np.stack([trace.processor, trace.lanes], axis=1)
    return len(np.unique(places, axis=0)) < trace.blocks


def _events(trace: Trace, kept: list[int]) -> Iterator[Event]:
    scale = 1e-3 if trace.unit == "ns" else 1.0

    def complete(cta: int, name: str, category: str, begun: int, ended: int, **said: Any) -> Event:
        event = {
            "ph": "X", "name": name, "cat": category, "pid": _pid(trace, cta), "tid": _tid(trace, cta),
            "ts": round(begun * scale, DECIMALS), "dur": round((ended - begun) * scale, DECIMALS),
            "args": {trace.noun: cta, **said},
        }  # fmt: skip
        if category == "wait":
            event["cname"] = "grey"
        return event

    for cta in kept:
        now = int(trace.start[cta])
        for k, number in enumerate(trace.order):
            stretch = trace.stretches[number]
            until = int(trace.arrived[cta, k]) if k < trace.crossings else int(trace.end[cta])
            yield complete(cta, stretch.name, "work", now, until, round=k)
            now = until
            if k < trace.crossings:
                now = int(trace.left[cta, k])
                more = {"note": stretch.note} if stretch.note else {}
                if now > until:  # Perfetto shows a slice of no length as an instant, in a row of its own
                    yield complete(cta, f"waits, line {stretch.line}", "wait", until, now, line=stretch.line, **more)
        if not trace.complete:
            yield complete(cta, "not kept", "lost", now, int(trace.end[cta]))
    tiles = trace.tiles
    if tiles is None:
        return
    wanted = np.isin(tiles.cta, kept)
    for cta, kernel, number, begun, ended in zip(
        *(part[wanted].tolist() for part in (tiles.cta, tiles.kernel, tiles.number, tiles.begun, tiles.ended)),
        strict=True,
    ):  # fmt: skip
        yield complete(cta, f"{tiles.kernels[kernel]} {number}", "tile", begun, ended, block=number)


def _resident(trace: Trace) -> Iterator[Event]:
    """How many CTAs run, over time; viewers put what is counted behind the name."""
    scale = 1e-3 if trace.unit == "ns" else 1.0
    at = np.concatenate([trace.start, trace.end])
    change = np.concatenate([np.ones(trace.blocks, np.int64), -np.ones(trace.blocks, np.int64)])
    times, where = np.unique(at, return_inverse=True)
    count = np.cumsum(np.bincount(where, weights=change)) if len(at) else change
    step = max(-(-len(times) // 10_000), 1)
    pid = 0 if trace.processor is None or not trace.blocks else int(trace.processor.min())
    for time, number in zip(times[::step].tolist(), count[::step].tolist(), strict=True):
        yield {
            "ph": "C", "name": "resident", "pid": pid, "ts": round(time * scale, DECIMALS),
            "args": {trace.noun + "s": int(number)},
        }  # fmt: skip

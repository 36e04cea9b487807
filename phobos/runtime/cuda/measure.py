"""How long a kernel takes on a device: launches of a captured graph between two events.

Before each time the tensors that the kernel stores to are as they were given. A short kernel is launched several
times within one time, so that what lies between two events is long enough to be measured; then it goes on with what
the launch before it left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from phobos.runtime.binding import Bound
from phobos.runtime.conditions import stored_tensors
from phobos.runtime.cuda import driver, host, launch
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.cuda.preparing import Ready, prepared
from phobos.runtime.device import number_of
from phobos.runtime.plan import Plan

if TYPE_CHECKING:
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.options import LaunchOptions

LEAST_MS = 0.2  # between two events
MOST_LAUNCHES = 100


def times(
    kernel: Kernel, bound: Bound, options: LaunchOptions, device: str, repeat: int
) -> Iterator[tuple[Plan, float]]:
    """`repeat` times of one launch in milliseconds, each with the plan. `bound` holds host arrays, which stay as they
    are. Raises LaunchError, KernelFault."""
    number = number_of(device)
    copies, there = host.moved(bound, number)
    with driver.on(number):
        ready = prepared(kernel, there, options)
        if 0 in ready.plan.grid:
            yield from ((ready.plan, 0.0) for _ in range(repeat))
            return
        stored = [name for name in stored_tensors(bound.program) if name in copies]
        given = {name: DeviceArray(bound.tensors[name].array, number) for name in stored}
        stream = driver.new_stream()
        first, last = driver.new_event(timing=True), driver.new_event(timing=True)

        def elapsed(graph: int) -> float:
            for name in stored:
                driver.copy_within(copies[name].pointer, given[name].pointer, given[name].nbytes, stream)
            driver.record(first, stream)
            driver.launch_graph(graph, stream)
            driver.record(last, stream)
            took = driver.elapsed_ms(first, last)
            launch.synchronize(number)  # raises what the kernel left in its report
            return took

        for took in of_launch(ready, stream, elapsed, repeat):
            yield ready.plan, took


def of_launch(
    ready: Ready, stream: int, elapsed: Callable[[int], float], repeat: int
) -> Iterator[float]:
    """`repeat` times of a prepared launch in milliseconds; `elapsed` gives those of one launch of a graph."""
    launch.run(ready, stream)  # outside a graph: what is allocated once is allocated here
    launch.synchronize(ready.device)
    once = driver.captured(stream, lambda: launch.run(ready, stream))
    elapsed(once)
    alone = elapsed(once)
    count = min(MOST_LAUNCHES, max(1, math.ceil(LEAST_MS / max(alone, 1e-4))))

    def several() -> None:
        for _ in range(count):
            launch.run(ready, stream)

    graph = once if count == 1 else driver.captured(stream, several)
    for _ in range(repeat):
        yield elapsed(graph) / count

"""What the GPU benchmarks share: timing by events, tables, and what the figures were measured on."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cupy
import numpy
from figures import Figure, leaves, number
from figures import finish as keep

from phobos.codegen import nvrtc
from phobos.runtime.cuda import driver


def micros(work: Callable[[], Any], *, repeat: int = 30, warm: int = 5, inner: int = 1, captured: bool = True) -> float:
    """Median microseconds of `work`, which enqueues on the current stream; `inner` calls between two events.

    Captured in a graph first, so that the time of the host between event and launch is nobody's; `captured=False`
    leaves it in, for launches one by one.
    """
    if captured:
        work = graph_of(work)
    for _ in range(warm):
        work()
    cupy.cuda.Device().synchronize()
    times: list[float] = []
    for _ in range(repeat):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        for _ in range(inner):
            work()
        last.record()
        last.synchronize()
        times.append(1e3 * cupy.cuda.get_elapsed_time(first, last) / inner)
    return statistics.median(times)


def torch_micros(work: Callable[[], Any], *, repeat: int = 10, warm: int = 3, inner: int = 10) -> float:
    """Median microseconds of `work`, which enqueues on PyTorch's current stream: `inner` calls in a row, which hides
    the time of the host where one call takes longer than the host needs for it."""
    import torch

    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    times: list[float] = []
    for _ in range(repeat):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(inner):
            work()
        last.record()
        last.synchronize()
        times.append(1e3 * first.elapsed_time(last) / inner)
    return statistics.median(times)


def in_turns(works: Mapping[str, Callable[[], Any]], *, rounds: int = 40, inner: int = 10) -> dict[str, list[float]]:
    """Microseconds of each of `works`, which enqueue on PyTorch's current stream, once a round, in turns.

    A card's clocks follow its temperature and its power: what is measured first, or after a rest, gains some percent.
    In turns that meets all alike, and the ratio of two is one of neighbours (`ratio`). Each is captured `inner` times
    in a graph, so that no time of the host is in it.
    """
    import torch

    graphs = {}
    for name, work in works.items():
        work()
        torch.cuda.synchronize()
        graphs[name] = graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(inner):
                work()
    found: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 3):
        for name, graph in graphs.items():
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            graph.replay()
            last.record()
            last.synchronize()
            if turn >= 3:
                found[name].append(1e3 * first.elapsed_time(last) / inner)
    return found


def ratio(these: Sequence[float], of: Sequence[float]) -> float:
    """How often `these` fit into `of`: the median over the rounds of one `in_turns`."""
    return statistics.median(b / a for a, b in zip(these, of, strict=True))


def graph_of(work: Callable[[], Any]) -> Callable[[], None]:
    """`work` captured once; what is returned replays it on the current stream."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        work()
        stream.synchronize()
        stream.begin_capture()
        work()
        graph = stream.end_capture()
    return lambda: graph.launch(cupy.cuda.get_current_stream())


def machine() -> dict[str, str]:
    major, minor = nvrtc.version()
    return {
        "device": driver.device_name(0),
        "driver": "{}.{}".format(*driver.version()),
        "nvrtc": f"{major}.{minor}",
        "python": sys.version.split()[0],
        "cupy": cupy.__version__,
        "numpy": numpy.__version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": "python " + " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def table(title: str, head: list[str], rows: list[list[object]]) -> str:
    """A Markdown table."""
    lines = [f"{title}:", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        lines.append("| " + " | ".join(number(cell) if isinstance(cell, float) else str(cell) for cell in row) + " |")
    return "\n".join(lines) + "\n"


def finish(name: str, tables: list[str], figures: dict[str, Any], shaped: Sequence[Figure] | None = None) -> None:
    """Print the tables, and all figures in the one shape (`shaped`, or every number in `figures` under its keys)."""
    keep(name, list(leaves(figures)) if shaped is None else list(shaped), machine(), tables)

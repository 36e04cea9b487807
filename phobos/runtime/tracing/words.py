"""Times, numbers and blocks in words, alike in summaries, files and drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phobos.runtime.sizes import grouped as grouped
from phobos.runtime.sizes import nanoseconds

if TYPE_CHECKING:
    from phobos.runtime.tracing.trace import Trace, Unit


def time_of(time: float, unit: Unit) -> str:
    """`840 ns`, `12.3 us`, `1.2 ms`; `1 240 steps`."""
    if unit == "steps":
        text = grouped(round(time)) if time == int(time) or time >= 100 else f"{time:.1f}"
        return f"{text} step" if text == "1" else f"{text} steps"
    return nanoseconds(time)


def named(trace: Trace, block: int) -> str:
    """A block, and where it ran, if that is known."""
    return f"{trace.noun} {block}" + ("" if trace.processor is None else f" on multiprocessor {trace.processor[block]}")

"""Times, numbers and blocks in words, alike in summaries, files and drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phobos.runtime.tracing.trace import Trace, Unit


def time_of(time: float, unit: Unit) -> str:
    """`840 ns`, `12.3 us`, `1.2 ms`; `1 240 steps`."""
    if unit == "steps":
        text = grouped(round(time)) if time == int(time) or time >= 100 else f"{time:.1f}"
        return f"{text} step" if text == "1" else f"{text} steps"
    for limit, per, name in ((1e3, 1.0, "ns"), (1e6, 1e3, "us"), (1e9, 1e6, "ms")):
        if time < limit:
            return f"{time / per:.3g} {name}"
    return f"{time / 1e9:.3g} s"


def grouped(number: int) -> str:
    """`1 056`."""
    return f"{number:,}".replace(",", " ")


def named(trace: Trace, block: int) -> str:
    """A block, and where it ran, if that is known."""
    return f"{trace.noun} {block}" + ("" if trace.processor is None else f" on multiprocessor {trace.processor[block]}")

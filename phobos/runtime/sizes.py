"""Bytes, times and rates in words: as many figures as mean something, thousands apart, no exponents."""

from __future__ import annotations

from collections.abc import Sequence

MOST_SECONDS = 1e9  # of a time limit: thirty years, and few enough that their nanoseconds are a number of 64 bits


def size(count: float) -> str:
    """`640 KiB`: three to four figures and a unit."""
    return _in_units(count, ("bytes", "KiB", "MiB", "GiB"), 1024, 4)


def duration(ms: float) -> str:
    """`1.25 ms`, `3.1 s`."""
    return _in_units(ms, ("ms", "s"))


def short_duration(ms: float) -> str:
    """`2.38 us`, `1.2 ms`, `3 s`."""
    return _in_units(1e3 * ms, ("us", "ms", "s"))


def nanoseconds(ns: float) -> str:
    """`840 ns`, `12.3 us`, `1.2 ms`."""
    return _in_units(ns, ("ns", "us", "ms", "s"))


def rate(gb_per_s: float) -> str:
    """`0.047 GB/s`, `4 100 GB/s`."""
    return f"{_figures(gb_per_s, 3)} GB/s" if gb_per_s >= 0.001 or not gb_per_s else "under 0.001 GB/s"


def grouped(number: float) -> str:
    """A whole number: `1 056`."""
    return f"{number:,.0f}".replace(",", " ")


def _in_units(amount: float, units: Sequence[str], step: int = 1000, figures: int = 3) -> str:
    """In the first unit of which there is less than a `step`, as it is written."""
    for unit in units[:-1]:
        if float(f"{amount:.{figures}g}") < step:
            return f"{_figures(amount, figures)} {unit}"
        amount /= step
    return f"{_figures(amount, figures)} {units[-1]}"


def _figures(number: float, figures: int) -> str:
    rounded = float(f"{number:.{figures}g}")
    return grouped(rounded) if abs(rounded) >= 1000 else f"{rounded:.{figures}g}"

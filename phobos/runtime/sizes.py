"""Bytes and times in words."""

from __future__ import annotations

MOST_SECONDS = 1e9  # of a time limit: thirty years, and few enough that their nanoseconds are a number of 64 bits


def size(count: float) -> str:
    """`640 KiB`: three to four digits and a unit."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def duration(ms: float) -> str:
    """`1.25 ms`, `3.1 s`."""
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"

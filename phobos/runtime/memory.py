"""How much memory is free: what cannot fit is refused before the system ends somebody for it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container, by version


def memory_bytes() -> int | None:
    """Bytes that are free, swap included, and no more than a container may have; None where the system does not say."""
    known = [_free(), *(_number(limit) for limit in _LIMITS)]
    return min((size for size in known if size), default=None)


def _free() -> int | None:
    with suppress(OSError, ValueError, KeyError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        table = {name: int(held.split()[0]) for name, _, held in (line.partition(":") for line in lines)}
        return (table["MemAvailable"] + table["SwapFree"]) * 1024
    with suppress(AttributeError, OSError, ValueError):  # there is no such call on Windows
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _number(path: str) -> int | None:
    with suppress(OSError, ValueError):
        return int(Path(path).read_text(encoding="ascii"))  # "max" is none
    return None

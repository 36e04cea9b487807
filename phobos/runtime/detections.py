"""What a run can be asked to look for, which of it a GPU can find, and what that took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phobos.errors import LaunchError
from phobos.runtime.sizes import duration, size
from phobos.value import value

DETECTIONS = ("races", "deadlock", "uninitialised", "bounds")
"""The reference runtime looks for all but races in every run."""


def words_of(detect: str | Sequence[str]) -> tuple[str, ...]:
    """`"races, bounds"` as words. Raises LaunchError for a word that names nothing."""
    words = detect.split(",") if isinstance(detect, str) else detect
    if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise LaunchError(f"{detect!r} cannot be detected: {', '.join(DETECTIONS)} can")
    found = tuple(word.strip() for word in words if word.strip())
    for word in found:
        if word not in DETECTIONS:
            raise LaunchError(f"{word!r} cannot be detected: {', '.join(DETECTIONS)} can")
    return found


def demand_on_gpu(detect: tuple[str, ...], timeout: float | None) -> None:
    """Raises LaunchError for what cannot be looked for on a GPU."""
    if "uninitialised" in detect:
        raise LaunchError(
            "reads of uninitialised tiles cannot be detected on a GPU: a register does not say whether it was written; "
            "use the reference runtime (--device cpu, in Python `kernel.reference`)"
        )
    if "deadlock" in detect and timeout == 0:
        raise LaunchError("on a GPU a deadlock is found by the time limit, and this launch has none: give a `timeout`")


@value
class Search:
    """What it took to look for races on a GPU where none was seen, and what would not have been (None: nothing)."""

    elapsed_ms: float
    plain_ms: float  # of the same launch without the search
    shadow_bytes: int
    missed: str | None

    def __str__(self) -> str:
        times = f" ({self.elapsed_ms / self.plain_ms:.3g} times)" if self.plain_ms else ""
        said = (
            f"no race was seen: {duration(self.elapsed_ms)} with the search, {duration(self.plain_ms)} without{times}, "
            f"{size(self.shadow_bytes)} of shadows"
        )
        return said if self.missed is None else f"{said}\n  {self.missed}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "races": 0, "elapsed_ms": self.elapsed_ms, "elapsed_ms_without": self.plain_ms,
            "shadow_bytes": self.shadow_bytes, "missed": self.missed,
        }  # fmt: skip

"""What a caller may say about one launch, and what of it cannot be meant."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from operator import index
from typing import Any

from phobos.errors import LaunchError
from phobos.runtime.placing import GridOption
from phobos.value import value


@value
class LaunchOptions:
    """What a caller may say about one launch; None is "decide". `device` is "cpu" or "cuda:N".

    `constants` are the caller's choices for `@autotune` and `@cluster` names. `timeout` is in seconds, 0 for none.
    `resident` is how many blocks fit at once in the reference runtime; on a GPU, which knows how many fit, it only
    bounds the workers of a persistent schedule. `schedule` is one of `phobos.semantics.schedules.KINDS`; `l2_group`
    puts so many blocks along x into a band, whose blocks run together. `keep` lets data stay on chip across barriers.
    `unchecked` launches in spite of what the checker found. `host_checks=False` leaves the promises of `@aligned` to
    guards in the kernel. `tuned=False` ignores what `phobos tune` found. `detect` is what to look for (`detections`).
    """

    constants: tuple[tuple[str, int], ...] = ()
    grid: GridOption = None
    resident: int | None = None
    schedule: str | None = None
    l2_group: int | None = None
    stream: Any = None
    timeout: float | None = None
    unchecked: bool = False
    debug: bool = False
    keep: bool = True
    reserved_sms: int = 0
    host_checks: bool = True
    tuned: bool = True
    detect: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """All that a launch is decided by; where it goes is not."""
        return (
            self.constants, self.grid, self.schedule, self.l2_group, self.timeout, self.unchecked, self.debug,
            self.keep, self.reserved_sms, self.host_checks, self.tuned, self.resident, self.detect,
        )  # fmt: skip


def chosen_constants(constants: Mapping[str, int] | None) -> tuple[tuple[str, int], ...]:
    """A caller's choice of constants. Raises LaunchError where it is none."""
    if not constants:
        return ()
    if not isinstance(constants, Mapping):
        raise LaunchError(f'`constants` is {constants!r}: give names and numbers, as in {{"TILE": 256}}')
    try:
        return tuple(sorted((name, index(number)) for name, number in constants.items()))
    except TypeError:
        raise LaunchError(f"`constants` is {constants!r}: names and whole numbers are meant") from None


def time_limit(timeout: float | None) -> float | None:
    """A caller's time limit in seconds. Raises LaunchError where it is none."""
    if timeout is None or (isinstance(timeout, Real) and timeout >= 0):
        return timeout
    raise LaunchError(f"`timeout` is {timeout!r}: give seconds, or 0 for no limit")

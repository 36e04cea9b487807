"""What a caller may say about one launch, and what of it cannot be meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from operator import index
from typing import Any, SupportsIndex

from phobos.errors import LaunchError
from phobos.runtime.detections import words_of
from phobos.runtime.placing import GridOption
from phobos.runtime.sizes import MOST_SECONDS
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


Chosen = tuple[tuple[str, int], ...]
"""A caller's choice of constants, in the order of their names."""


def chosen_constants(constants: Mapping[str, int] | None) -> Chosen:
    """A caller's choice of constants. Raises LaunchError where it is none."""
    if not constants:
        return ()
    if not isinstance(constants, Mapping):
        raise LaunchError(f'`constants` is {constants!r}: give names and numbers, as in {{"TILE": 256}}')
    try:
        if any(isinstance(number, bool) for number in constants.values()):
            raise TypeError
        return tuple(sorted((name, index(number)) for name, number in constants.items()))
    except TypeError:
        raise LaunchError(f"`constants` is {constants!r}: names and whole numbers are meant") from None


def asked(
    constants: Mapping[str, int] | None = None, grid: GridOption = None, resident: int | None = None,
    schedule: str | None = None, l2_group: int | None = None, stream: Any = None, timeout: float | None = None,
    unchecked: bool = False, debug: bool = False, keep: bool = True, reserved_sms: int = 0, host_checks: bool = True,
    tuned: bool = True, detect: str | Sequence[str] = (),
) -> LaunchOptions:  # fmt: skip
    """What a Python caller says, each as what it must be: whole numbers of any library, grids as tuples. Raises
    LaunchError for what is none; what is a kernel's to refuse is refused when it is known."""
    if schedule is not None and not isinstance(schedule, str):
        raise LaunchError(f"`schedule` is {schedule!r}: give the name of one")
    if resident is not None:
        resident = whole("resident", resident)
    if reserved_sms != 0:
        reserved_sms = whole("reserved_sms", reserved_sms, 0) or 0
    switches = (unchecked, debug, keep, host_checks, tuned)
    if any(type(given) is not bool for given in switches):
        named = zip(("unchecked", "debug", "keep", "host_checks", "tuned"), switches)
        unchecked, debug, keep, host_checks, tuned = (_switch(name, given) for name, given in named)
    return LaunchOptions(
        chosen_constants(constants), whole_grid(grid), resident, schedule,
        l2_group if l2_group is None else _number(l2_group), stream, time_limit(timeout), unchecked, debug, keep,
        reserved_sms, host_checks, tuned, words_of(detect) if detect else (),
    )  # fmt: skip


def whole(name: str, given: int | None, least: int = 1) -> int | None:
    """A whole number, where one is given. Raises LaunchError."""
    number = _number(given)
    if number is None or (type(number) is int and number >= least):
        return number
    raise LaunchError(f"`{name}` is {given!r}: give a whole number of at least {least}")


def _switch(name: str, given: object) -> bool:
    """Raises LaunchError: the words "no" and "false" are as good as a yes to Python."""
    own: Any = given
    number = own.item() if getattr(given, "shape", None) == () else given
    if isinstance(number, int) and number in (0, 1):
        return bool(number)
    raise LaunchError(f"`{name}` is {given!r}: give True or False")


def whole_grid(grid: GridOption) -> GridOption:
    """A grid as a number or a tuple of numbers, whoever made them. What is none stays what it is."""
    if grid is None or type(grid) is int:
        return grid
    alone = isinstance(grid, str) or getattr(grid, "shape", None) == ()  # an array of no axis is one number
    if isinstance(grid, Iterable) and not alone:
        return tuple(map(_number, grid))
    number: GridOption = _number(grid)
    return number


def _number(given: Any) -> Any:
    """NumPy's numbers are as good as Python's; True is none."""
    if given is None or type(given) is int or isinstance(given, bool) or not isinstance(given, SupportsIndex):
        return given
    return index(given)


def time_limit(timeout: float | None, name: str = "timeout") -> float | None:
    """A caller's time limit in seconds. Raises LaunchError where it is none."""
    number = isinstance(timeout, Real) and not isinstance(timeout, bool)
    if timeout is None or (number and 0 <= timeout < MOST_SECONDS):
        return timeout
    raise LaunchError(f"`{name}` is {timeout!r}: give seconds, or 0 for no limit")

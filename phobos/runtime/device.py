"""Whether a GPU answers, asked of the driver library alone: a machine without one loads nothing of CUDA."""

from __future__ import annotations

from functools import cache

from phobos.runtime.cuda import driver as cuda


@cache
def driver() -> tuple[int, str]:
    """(CUDA devices, what to say about it)."""
    why = cuda.trouble()
    if why:
        return 0, why
    count, called = cuda.device_count(), f"{cuda.device_name(0)} answers"
    return count, called if count == 1 else f"{called}, the first of {count}"


def chosen(asked: str) -> tuple[str, str]:
    """The device for `--device auto|cpu|cuda|cuda:N`, and why. Raises ValueError for one that does not exist."""
    if asked == "cpu":
        return "cpu", "reference runtime, as asked for"
    if asked == "auto":
        count, said = driver()
        if not count:
            return "cpu", f"reference runtime: {said}"
        from phobos.codegen.nvrtc import location

        if location() is None:
            return "cpu", f"reference runtime: {said}, but NVRTC is not installed (pip install 'phobos-tools[nvrtc]')"
        from phobos.codegen.cards import OLDEST

        if cuda.capability(0) < OLDEST:
            return "cpu", f"reference runtime: {said}, but kernels need sm_{OLDEST[0]}{OLDEST[1]} or newer"
        return "cuda:0", said
    count, said = driver()
    number = 0 if asked == "cuda" else int(asked.removeprefix("cuda:"))
    if number >= count:
        raise ValueError(f"no such device {asked}: {said if not count else f'there are {count}, counted from 0'}")
    return f"cuda:{number}", "as asked for"


def number_of(device: str) -> int:
    """The N of "cuda:N"; 0 where none is named."""
    return int(device.partition(":")[2] or 0)

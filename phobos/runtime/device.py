"""Whether a GPU answers, asked of the driver library alone: a machine without one loads nothing of CUDA."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from functools import cache


@cache
def driver() -> tuple[int, str]:
    """(CUDA devices, what to say about it)."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return 0, "no CUDA driver is installed"
    status = library.cuInit(0)
    if status == 100:
        return 0, "the CUDA driver sees no GPU"
    if status != 0:
        return 0, f"the CUDA driver does not start (error {status})"
    count = ctypes.c_int(0)
    if library.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return 0, "the CUDA driver sees no GPU"
    label = ctypes.create_string_buffer(128)
    handle = ctypes.c_int(0)
    called = "a GPU answers"
    if library.cuDeviceGet(ctypes.byref(handle), 0) == 0 and library.cuDeviceGetName(label, 128, handle) == 0:
        called = f"{label.value.decode(errors='replace')} answers"
    return count.value, called if count.value == 1 else f"{called}, the first of {count.value}"


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
        return "cuda:0", said
    count, said = driver()
    number = 0 if asked == "cuda" else int(asked.removeprefix("cuda:"))
    if number >= count:
        raise ValueError(f"no such device {asked}: {said if not count else f'there are {count}, counted from 0'}")
    return f"cuda:{number}", "as asked for"


def number_of(device: str) -> int:
    """The N of "cuda:N"; 0 where none is named."""
    return int(device.partition(":")[2] or 0)

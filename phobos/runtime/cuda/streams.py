"""Which stream a launch goes to: the one given, else the current stream of the library the arrays come from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from phobos.errors import LaunchError
from phobos.runtime.binding import Bound

if TYPE_CHECKING:
    from phobos.runtime.options import LaunchOptions


def stream_of(given: Any, library: str, device: int) -> int:
    """The handle of a stream: PyTorch's, CuPy's, Numba's, or a number; `library` says whose is current otherwise."""
    if given is None:
        if library == "torch":
            return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)
        if library == "cupy":
            return int(sys.modules["cupy"].cuda.get_current_stream(device).ptr)
        return 0
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    for name in ("cuda_stream", "ptr", "handle"):
        handle = getattr(given, name, None)
        if handle is not None:
            handle = getattr(handle, "value", handle)
            return int(handle or 0)
    protocol = getattr(given, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    raise LaunchError(
        f"`stream` is of type {type(given).__name__}: pass a CuPy or PyTorch stream, or its handle as a number"
    )


def stream_for(options: LaunchOptions, bound: Bound, device: int) -> int:
    """The handle of the stream that a launch with these options goes to. Raises LaunchError."""
    return stream_of(options.stream, library_of(bound), device)


def library_of(bound: Bound) -> str:
    """The library the arrays come from: "torch", "cupy" or another's name."""
    libraries = {type(held.array).__module__.partition(".")[0] for held in bound.tensors.values()}
    return next((name for name in ("torch", "cupy") if name in libraries), "")

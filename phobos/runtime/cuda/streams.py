"""Which stream a launch goes to: the one given, else the current stream of the library the arrays come from."""

from __future__ import annotations

import sys
from typing import Any

from phobos.errors import LaunchError
from phobos.runtime.binding import Bound


def stream_of(given: Any, bound: Bound, device: int) -> int:
    """The handle of a stream: PyTorch's, CuPy's, Numba's, or a number; the arrays' own library says otherwise."""
    if given is None:
        return _current(bound, device)
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


def _current(bound: Bound, device: int) -> int:
    libraries = {type(held.array).__module__.split(".")[0] for held in bound.tensors.values()}
    if "torch" in libraries:
        return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)
    if "cupy" in libraries:
        return int(sys.modules["cupy"].cuda.get_current_stream(device).ptr)
    return 0

"""Which stream a launch goes to: the one given, else the current stream of the library the arrays come from, else the
one on which arrays of other libraries say that they are worked on."""

from __future__ import annotations

import sys
from numbers import Integral
from typing import TYPE_CHECKING, Any

from phobos.errors import LaunchError
from phobos.runtime import arrays
from phobos.runtime.binding import Bound
from phobos.runtime.cuda import driver

if TYPE_CHECKING:
    from phobos.runtime.options import LaunchOptions


PAGE = 4096  # bytes from address 0 on where nothing lies


def stream_of(given: Any, library: str, device: int) -> int:
    """The handle of a stream: PyTorch's, CuPy's, Numba's, or a number; `library` says whose is current otherwise."""
    if given is None:
        if library == "torch":
            return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)
        if library == "cupy":
            return int(sys.modules["cupy"].cuda.get_current_stream(device).ptr)
        return 0
    try:
        handle = _handle(given)
    except (TypeError, ValueError, IndexError):
        handle = None
    if handle is None:
        raise LaunchError(
            f"`stream` is of type {type(given).__name__}: pass a CuPy or PyTorch stream, or its handle as a number"
        )
    if not _can_be(handle):
        raise LaunchError(f"`stream` is {handle}, which is no handle: pass the stream itself, or leave it out")
    return handle


def _can_be(handle: int) -> bool:
    """Whether a number can be a stream's handle, an address but for those of the default streams: the driver follows
    it, whatever is there."""
    return handle in driver.DEFAULT_STREAMS or PAGE <= handle < 1 << 64


def _handle(given: Any) -> int | None:
    """None for what is no stream. An event and a piece of memory have addresses, too: the driver would follow them."""
    if isinstance(given, Integral) and not isinstance(given, bool):
        return int(given)
    protocol = getattr(given, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    own = getattr(given, "cuda_stream", None)
    if own is not None:
        return int(own)
    for name in ("ptr", "handle") if hasattr(given, "add_callback") else ():
        handle = getattr(given, name, None)
        if handle is not None:
            handle = getattr(handle, "value", handle)
            return int(handle or 0)
    return None


def stream_for(options: LaunchOptions, bound: Bound, device: int) -> int:
    """The handle of the stream that a launch with these options goes to, after the work on other streams that arrays
    say they are part of. Raises LaunchError."""
    library = library_of(bound)
    told = list(dict.fromkeys(_told(one) for held in bound.tensors.values() if (one := held.stream) and _can_be(one)))
    if options.stream is None and not library and told:
        stream = told[0]
    else:
        stream = stream_of(options.stream, library, device)
    for other in told:
        if other != stream and driver.capture_of(other) is None:
            driver.synchronize_stream(other)
    return stream


def _told(stream: int) -> int:
    return 0 if stream == driver.LEGACY_STREAM else stream


def library_of(bound: Bound) -> str:
    """The library whose current stream is meant: "torch", "cupy" or none."""
    libraries = {arrays.library_of(held.array) for held in bound.tensors.values()}
    return next((name for name in ("torch", "cupy") if name in libraries), "")

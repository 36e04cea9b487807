"""From CUDA C++ text to a cubin, on any machine: the compiler library, and nothing of Phobos.

NVRTC needs no GPU and no toolkit. The eleven functions of its C interface are called directly: that works with
the library of any wheel, toolkit or CuPy installation, and costs none of the 100 ms that importing a binding
takes. Every compilation names one real architecture, so that what comes out is machine code for it and never
text that a driver would have to compile (and might be too old for).
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from phobos.errors import PhobosError
from phobos.value import value

# Which products are contracted with a sum is said in the text (`spelling.multiply_add`), not left to the compiler.
FLAGS = ("-default-device", "--std=c++17", "--diag-suppress=177", "--fmad=false")


class CompilerMissing(PhobosError):
    """No NVRTC library can be loaded here; the message says what to install."""


class CompileError(PhobosError):
    """NVRTC refused a text that this project wrote. `log` is what it said."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


@value
class Compiled:
    """`cubin` and `ptx` of one text for one architecture; `log` holds the compiler's warnings."""

    arch: str
    cubin: bytes
    ptx: str
    log: str


def compile_text(text: str, name: str, arch: str, options: Sequence[str] = ()) -> Compiled:
    """Compile `text` for `arch` (`sm_90a`, ...). Raises CompileError, CompilerMissing."""
    library = _library()
    handle = ctypes.c_void_p()
    _check(library, "nvrtcCreateProgram", ctypes.byref(handle), text.encode(), name.encode(), 0, None, None)
    try:
        flags = [f"--gpu-architecture={arch}", *FLAGS, *options]
        array = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
        status = library.nvrtcCompileProgram(handle, len(flags), array)
        log = (
            _bytes(library, handle, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
            .rstrip(b"\0")
            .decode("utf-8", "replace")
        )
        if status:
            first = next((line for line in log.splitlines() if "error" in line), "no message")
            raise CompileError(f"NVRTC cannot compile `{name}` for {arch}: {first.strip()}", log)
        return Compiled(
            arch,
            _bytes(library, handle, "nvrtcGetCUBINSize", "nvrtcGetCUBIN"),
            _bytes(library, handle, "nvrtcGetPTXSize", "nvrtcGetPTX").rstrip(b"\0").decode(),
            log.strip(),
        )
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(handle))


def version() -> tuple[int, int]:
    """The compiler's version. Raises CompilerMissing."""
    library = _library()
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(library, "nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def architectures() -> tuple[int, ...]:
    """What it can compile for: 75, 80, ..."""
    library = _library()
    count = ctypes.c_int()
    _check(library, "nvrtcGetNumSupportedArchs", ctypes.byref(count))
    array = (ctypes.c_int * count.value)()
    _check(library, "nvrtcGetSupportedArchs", array)
    return tuple(array)


@functools.cache
def location() -> str | None:
    """The file that holds the compiler, or None."""
    for find in (_in_wheels, _by_pathfinder, _by_loader):
        found = find()
        if found is not None:
            return found
    return None


# --- finding it ---------------------------------------------------------------------------------------


def _in_wheels() -> str | None:
    """In an `nvidia-cuda-nvrtc` wheel: site-packages/nvidia/cu13/lib or nvidia/cuda_nvrtc/lib."""
    specification = importlib.util.find_spec("nvidia")
    for root in specification.submodule_search_locations or () if specification else ():
        for folder, pattern in (
            ("cu13/lib", "libnvrtc.so.*"),
            ("cuda_nvrtc/lib", "libnvrtc.so.*"),
            ("cu13/bin/x86_64", "nvrtc64_*.dll"),
            ("cuda_nvrtc/bin", "nvrtc64_*.dll"),
        ):
            for path in sorted(Path(root, folder).glob(pattern), reverse=True):
                if "alt" not in path.name:
                    return str(path)
    return None


def _by_pathfinder() -> str | None:
    """Where `cuda-pathfinder` (part of `cuda-bindings` and of CuPy) finds it: toolkits, conda, CUDA_HOME."""
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.pathfinder") is None:
        return None
    from cuda import pathfinder

    try:
        return str(pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path)
    except Exception:  # it has its own exception types, by version
        return None


def _by_loader() -> str | None:
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return None


@functools.cache
def _library() -> Any:
    path = location()
    if path is None:
        raise CompilerMissing(
            "no CUDA compiler library (NVRTC) is installed here; "
            "install it with: pip install 'phobos-tools[nvrtc]' (98 MB, needs no GPU)"
        )
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise CompilerMissing(f"the CUDA compiler library at {path} cannot be loaded: {error}") from error
    try:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        _ = library.nvrtcGetCUBIN
    except AttributeError as error:
        raise CompilerMissing(f"the library at {path} is no NVRTC of CUDA 11.8 or newer: {error}") from error
    return library


def _check(library: Any, name: str, *arguments: object) -> None:
    function: Callable[..., int] = getattr(library, name)
    status = function(*arguments)
    if status:
        message = library.nvrtcGetErrorString(status).decode()
        raise CompileError(f"{name} failed: {message}", "")


def _bytes(library: Any, handle: ctypes.c_void_p, size: str, get: str) -> bytes:
    count = ctypes.c_size_t()
    _check(library, size, handle, ctypes.byref(count))
    buffer = ctypes.create_string_buffer(count.value)
    _check(library, get, handle, buffer)
    return buffer.raw

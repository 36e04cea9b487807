"""The CUDA driver, called directly: devices, modules, occupancy, launches, memory, streams, events.

The driver library comes with the driver and needs nothing else, so asking whether a GPU is there costs a few
milliseconds and imports nothing; and arrays of any library work, as all of them share the device's primary
context. Every failed call is a `DriverError` that names the call.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from phobos.errors import PhobosError

Handle = int
Context = Hashable  # names a context for as long as the process lives

# names and numbers of cuda.h
ATTRIBUTE_MULTIPROCESSORS = 16
ATTRIBUTE_MAJOR, ATTRIBUTE_MINOR = 75, 76
ATTRIBUTE_PAGEABLE, ATTRIBUTE_COOPERATIVE = 88, 95
FUNCTION_STATIC_SHARED, FUNCTION_LOCAL, FUNCTION_REGISTERS, FUNCTION_MAX_DYNAMIC_SHARED = 1, 3, 4, 8
HOST_PORTABLE, HOST_MAPPED = 1, 2
EVENT_NO_TIMING = 2
STREAM_NON_BLOCKING = 1
CAPTURE_RELAXED = 2
POINTER_DEVICE = 9
NO_DEVICE = 100
INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED = 1, 2, 3
CONTEXT_LOST = (700, 716, 717, 718, 719)  # an access to no memory, unaligned, of the wrong kind; code gone astray
LEGACY_STREAM, PER_THREAD_STREAM = 1, 2  # the first is stream 0 by another name
DEFAULT_STREAMS = (0, LEGACY_STREAM, PER_THREAD_STREAM)


class DriverError(PhobosError):
    """A driver call failed. `status` is its number."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


_opened_by: list[int] = []  # the process that started the driver


@functools.cache
def _opened() -> tuple[Any | None, int]:
    """The driver library where one is installed, and the status with which it started."""
    _opened_by.append(os.getpid())
    names = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
    for name in names:
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        return found, found.cuInit(0)
    return None, 0


def library() -> Any | None:
    """The driver library, initialised, or None where there is none or it does not start."""
    found, status = _opened()
    return found if status == 0 else None


def trouble() -> str:
    """Why no GPU can be used on this machine; empty where one can."""
    if library() is not None:
        return "" if device_count() else "the CUDA driver sees no GPU"
    found, status = _opened()
    if found is None:
        return "no CUDA driver is installed"
    if status == NO_DEVICE:
        return "the CUDA driver sees no GPU"
    return f"the CUDA driver does not start: {_said(found, status)}"


def is_broken() -> bool:
    """Whether a driver is installed and does not start."""
    return _opened()[0] is not None and _opened()[1] not in (0, NO_DEVICE)


def call(name: str, *arguments: object) -> None:
    """Call a driver function; raise where it fails."""
    driver = library()
    if driver is None:
        raise DriverError(trouble(), NO_DEVICE)
    status = getattr(driver, name)(*arguments)
    if status:
        said = f"{name}: {_said(driver, status)}"
        if status == NOT_INITIALIZED and os.getpid() not in _opened_by:
            said += "; this process was forked after CUDA had started, and cannot use it: start it anew (spawn)"
        if status in CONTEXT_LOST:
            said += "; no CUDA call of this process works any more. If a kernel of Phobos did it, "
            said += "debug=True (--debug) says where"
        raise DriverError(said, status)


def _said(driver: Any, status: int) -> str:
    """What the driver says of a status, and its number."""
    text = ctypes.c_char_p()
    driver.cuGetErrorString(status, ctypes.byref(text))
    return f"{(text.value or b'unknown error').decode()} ({status})"


# --- devices and contexts -------------------------------------------------------------------------------


@functools.cache
def device_count() -> int:
    """Devices that the driver shows this process; 0 where there is no driver."""
    if library() is None:
        return 0
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    return count.value


@functools.cache
def handle(device: int) -> int:
    """The driver's own number of a device, which it gives for its place in the list."""
    number = ctypes.c_int()
    call("cuDeviceGet", ctypes.byref(number), ctypes.c_int(device))
    return number.value


def version() -> tuple[int, int]:
    """The newest CUDA that the driver knows."""
    number = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(number))
    return number.value // 1000, number.value % 1000 // 10


@functools.cache
def device_name(device: int) -> str:
    """What the vendor calls a device."""
    text = ctypes.create_string_buffer(256)
    call("cuDeviceGetName", text, 256, ctypes.c_int(handle(device)))
    return text.value.decode("utf-8", "replace")


@functools.cache
def identity(device: int) -> str:
    """A name of the card that no other has, in whatever process and order it is seen."""
    name = (ctypes.c_ubyte * 16)()
    call("cuDeviceGetUuid_v2", ctypes.byref(name), ctypes.c_int(handle(device)))
    return bytes(name).hex()


@functools.cache
def attribute(device: int, which: int) -> int:
    """A number of a device, by the driver's number for it."""
    number = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(number), which, ctypes.c_int(handle(device)))
    return number.value


def capability(device: int) -> tuple[int, int]:
    return attribute(device, ATTRIBUTE_MAJOR), attribute(device, ATTRIBUTE_MINOR)


@functools.cache
def _primary(device: int) -> ctypes.c_void_p:
    """The context that CuPy, PyTorch and the CUDA runtime use on this device; kept for the life of the process."""
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(handle(device)))
    return context


@contextmanager
def on(device: int) -> Iterator[Context]:
    """Calls inside concern `device`. A current context on that device (a green one, say) stays the current one.

    Gives the context: what was loaded, created or counted in one is of no use in another, on the same device too.
    """
    here, number = ctypes.c_void_p(), ctypes.c_int(-1)
    call("cuCtxGetCurrent", ctypes.byref(here))
    if here.value:
        if here.value == _primary(device).value:
            yield "primary"
            return
        call("cuCtxGetDevice", ctypes.byref(number))
        if number.value == handle(device):
            yield _identity(here)
            return
    call("cuCtxPushCurrent_v2", _primary(device))
    try:
        yield "primary"
    finally:
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def _identity(context: ctypes.c_void_p) -> Context:
    """A number that no later context has, where the driver gives one; an address may come again."""
    driver = library()
    number = ctypes.c_ulonglong()
    if driver is None or not hasattr(driver, "cuCtxGetId"):
        return context.value
    call("cuCtxGetId", context, ctypes.byref(number))
    return number.value


def current_device() -> int | None:
    """The device of this thread's current context: the one that CuPy or PyTorch was told to use. None without one."""
    here, number = ctypes.c_void_p(), ctypes.c_int()
    if library() is None:
        return None
    call("cuCtxGetCurrent", ctypes.byref(here))
    if not here.value:
        return None
    call("cuCtxGetDevice", ctypes.byref(number))
    return _ordinal(number.value)


def device_of_pointer(pointer: int) -> int | None:
    """The device on which an address lies; None where the driver does not know it."""
    number, driver = ctypes.c_int(), library()
    if driver is None:
        return None
    status = driver.cuPointerGetAttribute(ctypes.byref(number), POINTER_DEVICE, ctypes.c_uint64(pointer))
    return None if status else number.value


def is_of_the_host(pointer: int, device: int) -> bool:
    """Whether the driver does not know an address, and a device does not read memory that it does not know."""
    driver = library()
    assert driver is not None
    status = driver.cuPointerGetAttribute(ctypes.byref(ctypes.c_int()), POINTER_DEVICE, ctypes.c_uint64(pointer))
    return bool(status == INVALID_VALUE) and not attribute(device, ATTRIBUTE_PAGEABLE)


def device_of_stream(stream: Handle) -> int | None:
    """The device of a stream that somebody created; None for the streams that every context has."""
    if stream in DEFAULT_STREAMS:
        return None
    context, here, number = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    call("cuStreamGetCtx", ctypes.c_void_p(stream), ctypes.byref(context))
    call("cuCtxGetCurrent", ctypes.byref(here))
    if context.value == here.value:
        call("cuCtxGetDevice", ctypes.byref(number))
        return _ordinal(number.value)
    call("cuCtxPushCurrent_v2", context)
    try:
        call("cuCtxGetDevice", ctypes.byref(number))
    finally:
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    return _ordinal(number.value)


def _ordinal(number: int) -> int:
    """The place in the list of the device that the driver calls `number`."""
    return next(device for device in range(device_count()) if handle(device) == number)


def multiprocessors(device: int) -> int:
    """Of the current context: a MIG slice, an MPS share or a green context has fewer than the card."""
    whole = attribute(device, ATTRIBUTE_MULTIPROCESSORS)
    driver = library()
    if driver is None or not hasattr(driver, "cuCtxGetDevResource"):
        return whole
    here = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(here))
    resource = (ctypes.c_ubyte * 256)()  # CUdevResource: type, 92 bytes inside, then the union; smCount comes first
    resource_of_sms = 1
    if not here.value or driver.cuCtxGetDevResource(here, ctypes.byref(resource), resource_of_sms) != 0:
        return whole
    count = int.from_bytes(bytes(resource[96:100]), "little")
    return count if 0 < count <= whole else whole


# --- modules and functions ------------------------------------------------------------------------------


def load(cubin: bytes, symbol: str) -> Handle:
    """The function `symbol` of a cubin, in the current context. The module stays loaded."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), cubin)
    call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
    assert function.value is not None
    return function.value


def function_attribute(function: Handle, which: int) -> int:
    """A number of a loaded function on the current device: bytes, or registers a thread."""
    number = ctypes.c_int()
    call("cuFuncGetAttribute", ctypes.byref(number), which, ctypes.c_void_p(function))
    return number.value


def allow_dynamic_shared(function: Handle, size: int) -> None:
    call("cuFuncSetAttribute", ctypes.c_void_p(function), FUNCTION_MAX_DYNAMIC_SHARED, ctypes.c_int(size))


def ctas_per_multiprocessor(function: Handle, threads: int, dynamic_shared_bytes: int) -> int:
    """The driver's own answer for this very function."""
    number = ctypes.c_int()
    call(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(number), ctypes.c_void_p(function),
        ctypes.c_int(threads), ctypes.c_size_t(dynamic_shared_bytes),
    )  # fmt: skip
    return number.value


@functools.lru_cache(maxsize=256)
def _sizes(*numbers: int) -> tuple[ctypes.c_uint, ...]:
    return tuple(map(ctypes.c_uint, numbers))


def launch(
    function: Handle, grid: tuple[int, int, int], threads: int, dynamic_shared_bytes: int, stream: Handle,
    arguments: Any, cooperative: bool,
) -> None:  # fmt: skip
    """`arguments` is an array of pointers to the arguments. A cooperative grid is resident as a whole or refused."""
    sizes = _sizes(*grid, threads, 1, 1, dynamic_shared_bytes)
    if cooperative:
        call("cuLaunchCooperativeKernel", ctypes.c_void_p(function), *sizes, ctypes.c_void_p(stream), arguments)
    else:
        call("cuLaunchKernel", ctypes.c_void_p(function), *sizes, ctypes.c_void_p(stream), arguments, None)


# --- memory ---------------------------------------------------------------------------------------------


def allocate(size: int) -> int:
    """The address of `size` new bytes on the current device. Raises DriverError where there is no room."""
    pointer = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
    return pointer.value


def allocate_zeros(words: int) -> int:
    """The address of so many new words of 32 bits, all 0 by now; waits for no stream that anybody else uses."""
    pointer, stream = allocate(4 * words), new_stream()
    fill_words(pointer, 0, words, stream)
    synchronize_stream(stream)
    call("cuStreamDestroy_v2", ctypes.c_void_p(stream))
    return pointer


def free(pointer: int) -> None:
    call("cuMemFree_v2", ctypes.c_uint64(pointer))


def free_bytes() -> int:
    """Memory of the current device that nobody has."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


def allocate_mapped(size: int) -> tuple[int, int]:
    """Host memory that the device can write: its address here and its address there."""
    here, there = ctypes.c_void_p(), ctypes.c_uint64()
    call("cuMemHostAlloc", ctypes.byref(here), ctypes.c_size_t(size), ctypes.c_uint(HOST_PORTABLE | HOST_MAPPED))
    call("cuMemHostGetDevicePointer_v2", ctypes.byref(there), here, ctypes.c_uint(0))
    assert here.value is not None
    ctypes.memset(here.value, 0, size)
    return here.value, there.value


def copy_in(pointer: int, address: int, size: int) -> None:
    if size:
        call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), ctypes.c_void_p(address), ctypes.c_size_t(size))


def copy_out(address: int, pointer: int, size: int) -> None:
    if size:
        call("cuMemcpyDtoH_v2", ctypes.c_void_p(address), ctypes.c_uint64(pointer), ctypes.c_size_t(size))


def copy_within(to: int, pointer: int, size: int, stream: Handle) -> None:
    """From one place on the device to another, in the order of a stream."""
    if size:
        call(
            "cuMemcpyDtoDAsync_v2", ctypes.c_uint64(to), ctypes.c_uint64(pointer), ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )  # fmt: skip


def fill_words(pointer: int, word: int, count: int, stream: Handle) -> None:
    """Set `count` words of 32 bits, in the order of a stream."""
    call(
        "cuMemsetD32Async",
        ctypes.c_uint64(pointer),
        ctypes.c_uint(word),
        ctypes.c_size_t(count),
        ctypes.c_void_p(stream),
    )


def read_words(pointer: int, count: int) -> list[int]:
    """Waits for all work of the default stream's order; never during a capture."""
    words = (ctypes.c_uint * count)()
    copy_out(ctypes.addressof(words), pointer, 4 * count)
    return list(words)


# --- tensor maps ----------------------------------------------------------------------------------------

MAP_BYTES, MAP_ALIGNMENT = 128, 64
MAP_TYPES = {"f16": 6, "bf16": 9}  # CUtensorMapDataType
MAP_SWIZZLES = {32: 1, 64: 2, 128: 3}  # CUtensorMapSwizzle, by the bytes of a box's row
MAP_PROMOTION = 2  # CU_TENSOR_MAP_L2_PROMOTION_L2_128B
MOST_MAPPED = 2**31 - 2**17  # of an extent: a coordinate, and a box that reaches past the end, are 32 bits


def encode_map(
    pointer: int, dtype: str, shape: tuple[int, int], row_bytes: int, box: tuple[int, int]
) -> Any:  # fmt: skip
    """The map by which bulk copies read boxes of a matrix: rows and columns of `shape` and of `box`; cells outside read
    as zero. `pointer` and `row_bytes` are multiples of 16. The argument of a kernel, by value."""
    size = {"f16": 2, "bf16": 2}[dtype]
    buffer = (ctypes.c_ubyte * (MAP_BYTES + MAP_ALIGNMENT))()
    shift = -ctypes.addressof(buffer) % MAP_ALIGNMENT
    made = (ctypes.c_ubyte * MAP_BYTES).from_buffer(buffer, shift)
    extents = (ctypes.c_uint64 * 2)(shape[1], shape[0])
    strides = (ctypes.c_uint64 * 1)(row_bytes)
    boxes = (ctypes.c_uint32 * 2)(box[1], box[0])
    steps = (ctypes.c_uint32 * 2)(1, 1)
    call(
        "cuTensorMapEncodeTiled", ctypes.byref(made), MAP_TYPES[dtype], 2, ctypes.c_void_p(pointer), extents, strides,
        boxes, steps, 0, MAP_SWIZZLES[box[1] * size], MAP_PROMOTION, 0,
    )  # fmt: skip
    return made


# --- streams and events ---------------------------------------------------------------------------------


def capture_of(stream: Handle) -> int | None:
    """The number of the capture by which what is enqueued on a stream goes into a graph now: no other has it."""
    state, number = ctypes.c_int(), ctypes.c_uint64()
    told = ctypes.byref(state), ctypes.byref(number), None, None, None
    call("cuStreamGetCaptureInfo_v2", ctypes.c_void_p(stream), *told)
    return number.value if state.value else None


@contextmanager
def beside_captures() -> Iterator[None]:
    """What captures forbid while they go on, as they cannot hold it (memory is allocated, a module loaded), done beside
    them."""
    mode = ctypes.c_int(CAPTURE_RELAXED)
    call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    try:
        yield
    finally:
        call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))


def synchronize_stream(stream: Handle) -> None:
    call("cuStreamSynchronize", ctypes.c_void_p(stream))


def synchronize() -> None:
    call("cuCtxSynchronize")


def new_stream() -> Handle:
    """A stream that waits for no other; it is there for the life of the process."""
    stream = ctypes.c_void_p()
    call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(STREAM_NON_BLOCKING))
    assert stream.value is not None
    return stream.value


def captured(stream: Handle, work: Callable[[], None]) -> Handle:
    """What `work` enqueues on `stream`, as a graph that can be launched; nothing of it has run."""
    graph, made = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), ctypes.c_int(CAPTURE_RELAXED))
    try:
        work()
    finally:
        call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
    call("cuGraphInstantiateWithFlags", ctypes.byref(made), graph, ctypes.c_ulonglong(0))
    call("cuGraphDestroy", graph)
    assert made.value is not None
    return made.value


def launch_graph(graph: Handle, stream: Handle) -> None:
    call("cuGraphLaunch", ctypes.c_void_p(graph), ctypes.c_void_p(stream))


def new_event(*, timing: bool) -> Handle:
    """An event of the current context; one without `timing` costs less and tells only whether it was reached."""
    event = ctypes.c_void_p()
    call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0 if timing else EVENT_NO_TIMING))
    assert event.value is not None
    return event.value


def record(event: Handle, stream: Handle) -> None:
    call("cuEventRecord", ctypes.c_void_p(event), ctypes.c_void_p(stream))


def is_done(event: Handle) -> bool:
    """Whether the work before an event has ended; does not wait."""
    driver = library()
    assert driver is not None
    return bool(driver.cuEventQuery(ctypes.c_void_p(event)) == 0)


def elapsed_ms(first: Handle, last: Handle) -> float:
    """Milliseconds between two events with timing; waits for the second."""
    call("cuEventSynchronize", ctypes.c_void_p(last))
    number = ctypes.c_float()
    call("cuEventElapsedTime", ctypes.byref(number), ctypes.c_void_p(first), ctypes.c_void_p(last))
    return number.value

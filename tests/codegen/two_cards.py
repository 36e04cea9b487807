"""A machine with two cards that are not alike, as the driver's own functions: what is done in the wrong place fails.

Contexts, functions, streams, events and memory know the device they belong to, and every call looks whether the
calling thread's current context is there. A launch without barriers runs the emitted text on this machine.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy
import pytest

from phobos.codegen.emitted import Emitted
from phobos.lowering.options import Options
from phobos.runtime import compiling
from phobos.runtime.cuda import driver, launch, loading
from tests.codegen import host

INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND = 201, 400, 500
HANDLES = (70, 41)  # what the driver calls its devices; their places in the list are 0 and 1
CAPABILITIES = ((8, 0), (9, 0))
MULTIPROCESSORS = (5, 3)
PER_MULTIPROCESSOR = (1, 2)


class TwoCards:
    """Stands for the driver library. `asked` holds (function, device) of every call that concerned a device."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, int]] = []
        self.launches: list[tuple[int, str, int, bool]] = []  # device, kernel, blocks, cooperative
        self.homes: dict[int, int] = {}  # of contexts, functions, streams, events: the device
        self.contexts: dict[int, int] = {}  # of functions, streams, events: the context
        self.memory: dict[int, tuple[int, Any]] = {}
        self.emitted: dict[bytes, Emitted] = {}
        self.functions: dict[int, Emitted] = {}
        self.current = threading.local()
        self.pageable = False  # whether the cards read memory of the host that nobody told them of
        self._next = 0x1000
        self._lock = threading.Lock()
        self.primaries = [self._new(0), self._new(1)]
        for device, context in enumerate(self.primaries):
            self.homes[context] = device

        def built(module: Any, unit: Any, options: Options) -> compiling.CompiledKernel:
            made = compiling.build(module, unit, options)
            self.emitted[made.cubin] = made.emitted
            return made

        monkeypatch.setattr(driver, "library", lambda: self)
        for cached in (driver.device_count, driver.handle, driver.device_name, driver.attribute, driver._primary):
            cached.cache_clear()
        monkeypatch.setattr(loading, "build", built)
        monkeypatch.setattr(loading, "_loaded", {})
        for name in ("_channels", "_in_flight", "_pending", "_seen_barriers"):
            monkeypatch.setattr(launch, name, {})
        monkeypatch.setattr(launch, "_used", set())

    def close(self) -> None:
        for cached in (driver.device_count, driver.handle, driver.device_name, driver.attribute, driver._primary):
            cached.cache_clear()

    # --- what a test uses -----------------------------------------------------------------------------------

    def of(self, device: int) -> list[str]:
        """The functions that were asked of a device."""
        return [name for name, where in self.asked if where == device]

    def context_on(self, device: int) -> int:
        """Another context than the primary one."""
        context = self._new(device)
        self.homes[context] = device
        return context

    def make_current(self, context: int) -> None:
        self._stack()[-1:] = [context]

    def stream_on(self, device: int) -> int:
        stream = self._new(device)
        self.homes[stream], self.contexts[stream] = device, self.primaries[device]
        return stream

    def array(self, device: int, array: numpy.ndarray) -> CardArray:
        self.memory[array.ctypes.data] = device, array
        return CardArray(array)

    # --- the driver -----------------------------------------------------------------------------------------

    def _new(self, device: int) -> int:
        with self._lock:
            self._next += 8
            return self._next

    def _stack(self) -> list[int]:
        if not hasattr(self.current, "stack"):
            self.current.stack = [0]
        return self.current.stack

    def _here(self, name: str) -> int:
        """The device of the current context; a call without one is a mistake."""
        context = self._stack()[-1]
        if not context:
            raise AssertionError(f"{name} without a current context")
        self.asked.append((name, self.homes[context]))
        return self.homes[context]

    def _device(self, name: str, handle: Any) -> int:
        device = HANDLES.index(handle.value)  # fails where somebody took a place in the list for the driver's number
        self.asked.append((name, device))
        return device

    def __getattr__(self, name: str) -> Any:
        if name in ("cuCtxGetDevResource",):
            raise AttributeError(name)
        raise NotImplementedError(name)

    def cuGetErrorString(self, status: int, text: Any) -> int:
        text._obj.value = b"refused by the cards of this test"
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def cuDeviceGet(self, handle: Any, ordinal: Any) -> int:
        handle._obj.value = HANDLES[ordinal.value]
        return 0

    def cuDeviceGetName(self, text: Any, size: int, handle: Any) -> int:
        text.value = f"card {self._device('cuDeviceGetName', handle)}".encode()
        return 0

    def cuDeviceGetAttribute(self, number: Any, which: int, handle: Any) -> int:
        device = self._device("cuDeviceGetAttribute", handle)
        known = {
            driver.ATTRIBUTE_MULTIPROCESSORS: MULTIPROCESSORS[device],
            driver.ATTRIBUTE_MAJOR: CAPABILITIES[device][0],
            driver.ATTRIBUTE_MINOR: CAPABILITIES[device][1],
            driver.ATTRIBUTE_COOPERATIVE: 1,
            driver.ATTRIBUTE_PAGEABLE: int(self.pageable),
        }
        number._obj.value = known[which]
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, handle: Any) -> int:
        context._obj.value = self.primaries[self._device("cuDevicePrimaryCtxRetain", handle)]
        return 0

    def cuCtxGetCurrent(self, context: Any) -> int:
        context._obj.value = self._stack()[-1] or None
        return 0

    def cuCtxGetDevice(self, number: Any) -> int:
        number._obj.value = HANDLES[self.homes[self._stack()[-1]]]
        return 0

    def cuCtxGetId(self, context: Any, number: Any) -> int:
        number._obj.value = context.value
        return 0

    def cuCtxPushCurrent_v2(self, context: Any) -> int:
        self._stack().append(context.value)
        return 0

    def cuCtxPopCurrent_v2(self, context: Any) -> int:
        context._obj.value = self._stack().pop()
        return 0

    def cuCtxSynchronize(self) -> int:
        self._here("cuCtxSynchronize")
        return 0

    def cuModuleLoadData(self, module: Any, cubin: bytes) -> int:
        device = self._here("cuModuleLoadData")
        emitted = self.emitted[cubin]
        handle = self._new(device)
        self.functions[handle] = emitted
        self.homes[handle], self.contexts[handle] = device, self._stack()[-1]
        module._obj.value = handle
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, symbol: bytes) -> int:
        function._obj.value = module.value
        return 0

    def _mine(self, name: str, handle: int) -> int:
        """0 where a function, stream or event may be used in the current context."""
        self._here(name)
        return 0 if self.contexts.get(handle) == self._stack()[-1] else INVALID_HANDLE

    def cuFuncGetAttribute(self, number: Any, which: int, function: Any) -> int:
        number._obj.value = 40 if which == driver.FUNCTION_REGISTERS else 0
        return self._mine("cuFuncGetAttribute", function.value)

    def cuFuncSetAttribute(self, function: Any, which: int, number: Any) -> int:
        return self._mine("cuFuncSetAttribute", function.value)

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, number: Any, function: Any, threads: Any, shared: Any) -> int:
        number._obj.value = PER_MULTIPROCESSOR[self.homes[self._stack()[-1]]]
        return self._mine("cuOccupancyMaxActiveBlocksPerMultiprocessor", function.value)

    def cuMemAlloc_v2(self, pointer: Any, size: Any) -> int:
        device = self._here("cuMemAlloc")
        held = ctypes.create_string_buffer(size.value)
        pointer._obj.value = ctypes.addressof(held)
        self.memory[pointer._obj.value] = device, held
        return 0

    def cuMemFree_v2(self, pointer: Any) -> int:
        return 0 if self.memory[pointer.value][0] == self._here("cuMemFree") else INVALID_CONTEXT

    def cuMemHostAlloc(self, pointer: Any, size: Any, flags: Any) -> int:
        return self.cuMemAlloc_v2(pointer, size)

    def cuMemHostGetDevicePointer_v2(self, there: Any, here: Any, flags: Any) -> int:
        there._obj.value = here.value
        return 0

    def _holds(self, name: str, pointer: int, size: int) -> int:
        device = self._here(name)
        for start, (home, held) in self.memory.items():
            length = held.nbytes if isinstance(held, numpy.ndarray) else len(held)
            if start <= pointer and pointer + size <= start + length:
                return 0 if home == device else INVALID_CONTEXT
        return INVALID_HANDLE

    def cuMemcpyHtoD_v2(self, pointer: Any, address: Any, size: Any) -> int:
        ctypes.memmove(pointer.value, address.value, size.value)
        return self._holds("cuMemcpyHtoD", pointer.value, size.value)

    def cuMemcpyDtoH_v2(self, address: Any, pointer: Any, size: Any) -> int:
        ctypes.memmove(address if isinstance(address, int) else address.value, pointer.value, size.value)
        return self._holds("cuMemcpyDtoH", pointer.value, size.value)

    def cuMemsetD32Async(self, pointer: Any, word: Any, count: Any, stream: Any) -> int:
        ctypes.memmove(pointer.value, numpy.full(count.value, word.value, numpy.uint32).ctypes.data, 4 * count.value)
        return self._holds("cuMemsetD32", pointer.value, 4 * count.value)

    def cuPointerGetAttribute(self, number: Any, which: int, pointer: Any) -> int:
        for start, (home, held) in self.memory.items():
            length = held.nbytes if isinstance(held, numpy.ndarray) else len(held)
            if start <= pointer.value < start + max(length, 1):
                number._obj.value = home
                return 0
        return 1

    def cuStreamGetCtx(self, stream: Any, context: Any) -> int:
        context._obj.value = self.contexts[stream.value]
        return 0

    def cuStreamCreate(self, stream: Any, flags: Any) -> int:
        stream._obj.value = made = self._new(device := self._here("cuStreamCreate"))
        self.homes[made], self.contexts[made] = device, self._stack()[-1]
        return 0

    def cuStreamDestroy_v2(self, stream: Any) -> int:
        return self._mine("cuStreamDestroy", stream.value)

    def cuStreamGetCaptureInfo_v2(self, stream: Any, state: Any, number: Any, *_: Any) -> int:
        state._obj.value = number._obj.value = 0
        return 0

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> int:
        before = getattr(self.current, "capture_mode", 0)
        self.current.capture_mode, mode._obj.value = mode._obj.value, before
        return 0

    def cuStreamSynchronize(self, stream: Any) -> int:
        self._here("cuStreamSynchronize")
        return 0

    def cuEventCreate(self, event: Any, flags: Any) -> int:
        device = self._here("cuEventCreate")
        event._obj.value = self._new(device)
        self.homes[event._obj.value], self.contexts[event._obj.value] = device, self._stack()[-1]
        return 0

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        return self._mine("cuEventRecord", event.value)

    def cuEventQuery(self, event: Any) -> int:
        return 0

    def cuEventSynchronize(self, event: Any) -> int:
        return 0

    def cuEventElapsedTime(self, number: Any, first: Any, last: Any) -> int:
        number._obj.value = 1.0
        return 0

    def _launched(self, cooperative: bool, function: Any, sizes: tuple[Any, ...], arguments: Any, stream: Any) -> int:
        device = self._here("launch")
        if self.contexts[function.value] != self._stack()[-1]:
            return INVALID_HANDLE
        if stream.value and stream.value not in driver.DEFAULT_STREAMS and self.homes[stream.value] != device:
            return INVALID_CONTEXT
        emitted = self.functions[function.value]
        grid = [size.value for size in sizes[:3]]
        self.launches.append((device, emitted.symbol, grid[0] * grid[1] * grid[2], cooperative))
        if cooperative:
            return 0  # what a barrier does on this machine, the tests of `fake_device` show
        kinds = {"float": ctypes.c_float, "double": ctypes.c_double, "long long": ctypes.c_longlong}
        given = [
            kinds.get(argument.ctype, ctypes.c_uint64).from_address(pointer)
            for argument, pointer in zip(emitted.arguments, arguments, strict=False)
        ]
        with self._lock:  # both cards run on this machine, and the program that stands in for one has global state
            library = host.build(emitted)
            library.run_kernel.restype = ctypes.c_longlong
            rounds = library.run_kernel(
                *(ctypes.c_uint(n) for n in grid), ctypes.c_int(0), ctypes.c_longlong(3_000_000), *given
            )
        return 0 if rounds >= 0 else 702

    def cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        return self._launched(False, function, rest[:7], rest[8], rest[7])

    def cuLaunchCooperativeKernel(self, function: Any, *rest: Any) -> int:
        return self._launched(True, function, rest[:7], rest[8], rest[7])


class LikeCupy:
    """As `CardArray`, with what CuPy's arrays tell, so that a launch is known again."""

    def __init__(self, array: numpy.ndarray, device: int) -> None:
        self.array, self.shape, self.strides, self.dtype = array, array.shape, array.strides, array.dtype
        self.data = type("Data", (), {"ptr": array.ctypes.data})()
        self.device = type("Device", (), {"id": device})()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__array_interface__, "version": 3, "strides": self.array.strides}


LikeCupy.__module__ = "cupy"


class CardArray:
    """NumPy memory that lies on a card and does not say on which: as Numba's arrays, only the driver knows."""

    def __init__(self, array: numpy.ndarray) -> None:
        self.array = array
        self.dtype = array.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__array_interface__, "version": 3, "strides": self.array.strides}

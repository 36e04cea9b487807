"""A CUDA device that is this machine: the driver's functions over the host runs of emitted text.

It lets the launch path be walked where there is no GPU. The real thing is tested on a card (tests/cuda).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy
import pytest

from phobos.codegen import cards
from phobos.codegen.emitted import Emitted
from phobos.lowering.options import Options
from phobos.runtime import compiling
from phobos.runtime.cuda import driver, launch, loading
from tests.codegen import host


class HostArray:
    """NumPy memory that says it lies on device 0."""

    def __init__(self, array: numpy.ndarray, device: int = 0) -> None:
        self.array = array
        self.device = device
        self.dtype = array.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__array_interface__, "version": 3, "strides": self.array.strides}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device


class FakeDriver:
    """Installed over `driver`. `launches` holds (symbol, grid, cooperative) of each launch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, multiprocessors: int = 4, per_multiprocessor: int = 2) -> None:
        self.launches: list[tuple[str, tuple[int, int, int], bool]] = []
        self.emitted: dict[bytes, Emitted] = {}
        self.functions: list[Emitted] = []
        self.memory: list[Any] = []
        self.graphs: list[Callable[[], None]] = []
        self.capture: int | None = None
        self.free_bytes = 1 << 30
        self.order = 0
        self.waits: list[int] = []  # streams that were waited for

        def built(module: Any, unit: Any, options: Options) -> compiling.CompiledKernel:
            made = compiling.build(module, unit, options)
            self.emitted[made.cubin] = made.emitted
            return made

        for name, value in {
            "library": lambda: object(),
            "device_count": lambda: 2,
            "device_name": lambda device: "this machine",
            "capability": lambda device: (9, 0),
            "multiprocessors": lambda device: multiprocessors,
            "load": self.load,
            "allow_dynamic_shared": lambda function, size: None,
            "ctas_per_multiprocessor": lambda function, threads, shared: per_multiprocessor,
            "function_attribute": lambda function, which: 32 if which == driver.FUNCTION_REGISTERS else 0,
            "launch": self.launch,
            "allocate": self.allocate,
            "allocate_zeros": lambda words: self.allocate(4 * words),
            "allocate_mapped": lambda size: (lambda p: (p, p))(self.allocate(size)),
            "fill_words": self.fill,
            "read_words": lambda pointer, count: list((ctypes.c_uint * count).from_address(pointer)),
            "free": lambda pointer: None,
            "free_bytes": lambda: self.free_bytes,
            "copy_in": lambda pointer, address, size: ctypes.memmove(pointer, address, size),
            "copy_out": lambda address, pointer, size: ctypes.memmove(address, pointer, size),
            "copy_within": lambda to, pointer, size, stream: ctypes.memmove(to, pointer, size),
            "new_stream": lambda: 1,
            "captured": self.captured,
            "launch_graph": lambda graph, stream: self.graphs[graph](),
            "encode_map": lambda pointer, dtype, shape, row_bytes, box: host.map_of(pointer, shape, row_bytes, box),
            "elapsed_ms": lambda first, last: 1.0,
            "capture_of": lambda stream: self.capture,
            "beside_captures": nullcontext,
            "device_of_stream": lambda stream: None,
            "synchronize_stream": self.waits.append,
            "synchronize": lambda: None,
            "new_event": lambda timing: 1,
            "record": lambda event, stream: None,
            "is_done": lambda event: False,
        }.items():
            monkeypatch.setattr(driver, name, value)
        monkeypatch.setattr(driver, "on", _nothing)
        monkeypatch.setattr(loading, "build", built)
        monkeypatch.setattr(loading, "_loaded", {})
        for name in ("_channels", "_in_flight", "_pending", "_seen_barriers"):
            monkeypatch.setattr(launch, name, {})
        assert cards.arch_of(9, 0) == "sm_90a"

    def load(self, cubin: bytes, symbol: str) -> int:
        self.functions.append(self.emitted[cubin])
        return len(self.functions)

    def allocate(self, size: int) -> int:
        memory = ctypes.create_string_buffer(size)
        self.memory.append(memory)
        return ctypes.addressof(memory)

    def captured(self, stream: int, work: Callable[[], None]) -> int:
        self.graphs.append(work)
        return len(self.graphs) - 1

    def fill(self, pointer: int, word: int, count: int, stream: int) -> None:
        for i in range(count):
            ctypes.c_uint.from_address(pointer + 4 * i).value = word

    def launch(
        self,
        function: int,
        grid: tuple[int, int, int],
        threads: int,
        shared: int,
        stream: int,
        pointers: Any,
        cooperative: bool,
    ) -> None:
        emitted = self.functions[function - 1]
        assert threads == emitted.threads and shared == emitted.dynamic_shared_bytes
        self.launches.append((emitted.symbol, grid, cooperative))
        kinds: dict[str, Any] = {"float": ctypes.c_float, "double": ctypes.c_double, "unsigned": ctypes.c_uint}
        kinds["long long"] = ctypes.c_longlong
        kinds["ph_map"] = host.Map
        arguments = []
        for argument, pointer in zip(emitted.arguments, pointers, strict=False):
            kind = kinds.get(argument.ctype, ctypes.c_uint64)
            arguments.append(kind.from_address(pointer))
        library = host.build(emitted)
        library.run_kernel.restype = ctypes.c_longlong
        rounds = library.run_kernel(
            *(ctypes.c_uint(n) for n in grid), ctypes.c_int(self.order), ctypes.c_longlong(3_000_000), *arguments
        )
        if rounds < 0:
            raise host.Stuck(emitted.symbol)


class _nothing:
    def __init__(self, device: int) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

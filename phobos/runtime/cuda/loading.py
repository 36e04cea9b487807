"""Compiled kernels on a device: loaded once, with what the driver says of them there."""

from __future__ import annotations

import threading
from collections import defaultdict

from phobos.codegen import cards
from phobos.lowering.options import Options
from phobos.runtime.compiling import CompiledKernel, build
from phobos.runtime.cuda import driver
from phobos.semantics.module import Module, Unit
from phobos.value import value


@value
class Loaded:
    """A compiled kernel on a device: its function, and what the driver says of it. `options`: as it was lowered."""

    compiled: CompiledKernel
    options: Options
    function: int
    registers: int
    shared_bytes: int
    ctas_per_sm: int
    limiter: str


# A function belongs to a context, what is known of a launch to a device: keys say which.
_loaded: dict[tuple[object, ...], Loaded] = {}
locks: defaultdict[int, threading.RLock] = defaultdict(threading.RLock)
"""Of what is kept of a device, here and in `launch`: no device waits for another."""


def arch(device: int) -> str:
    """The architecture that code for a device is compiled for."""
    return cards.arch_of(*driver.capability(device))


def load(module: Module, unit: Unit, options: Options, device: int, context: driver.Context) -> Loaded:
    """Compiled, loaded, its dynamic shared size set, and then its occupancy asked: of this function, here."""
    with locks[device]:
        return _load_once(module, unit, options, device, context)


def _load_once(module: Module, unit: Unit, options: Options, device: int, context: driver.Context) -> Loaded:
    key = (unit.program, options.key, device, context)
    if key in _loaded:
        return _loaded[key]
    made = build(module, unit, options)
    emitted = made.emitted
    with driver.beside_captures():
        function = driver.load(made.cubin, emitted.symbol)
        if emitted.dynamic_shared_bytes:
            driver.allow_dynamic_shared(function, emitted.dynamic_shared_bytes)
    resident = driver.ctas_per_multiprocessor(function, emitted.threads, emitted.dynamic_shared_bytes)
    registers = driver.function_attribute(function, driver.FUNCTION_REGISTERS)
    shared = driver.function_attribute(function, driver.FUNCTION_STATIC_SHARED) + emitted.dynamic_shared_bytes
    limits = cards.LIMITS.get(options.arch)
    limiter = made.occupancy(limits).limiter if limits is not None else "the device"
    _loaded[key] = loaded = Loaded(made, options, function, registers, shared, resident, limiter)
    return loaded

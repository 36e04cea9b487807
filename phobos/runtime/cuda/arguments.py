"""What a launch passes to each parameter of the emitted kernel."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

from phobos.codegen.emitted import Argument
from phobos.runtime.arrays import SIZES, Given
from phobos.runtime.cuda import driver

if TYPE_CHECKING:
    from phobos.runtime.cuda.detection import Shadows
    from phobos.runtime.cuda.preparing import Ready
    from phobos.runtime.cuda.reports import Channel


def argument_of(
    argument: Argument, ready: Ready, channel: Channel | None, addresses: dict[str, int], shadows: Shadows | None
) -> Any:
    """The number that a launch passes for `argument`, as the C type it is declared with.

    `addresses` are those of barrier tensors by name; `channel` is there where the kernel has a report, `shadows` where
    it looks for races.
    """
    bound = ready.bound
    match argument.kind:
        case "races":
            assert shadows is not None
            return ctypes.c_uint64(shadows.pointer)
        case "shadow":
            assert shadows is not None
            return ctypes.c_uint64(shadows.rows[argument.name])
        case "cells":
            assert shadows is not None
            return ctypes.c_longlong(shadows.counts[argument.name])
        case "tensor":
            held = bound.tensors.get(argument.name)
            return ctypes.c_uint64(addresses[argument.name] if held is None else held.pointer)
        case "scalar":
            number = bound.params[argument.name]
            if argument.ctype == "float":
                return ctypes.c_float(number)
            return ctypes.c_double(number) if argument.ctype == "double" else ctypes.c_longlong(int(number))
        case "dim":
            return ctypes.c_longlong(bound.dims[argument.name])
        case "pitch":
            held = bound.tensors[argument.name]
            return ctypes.c_longlong(held.strides[0] // SIZES[held.dtype])
        case "grid":
            root, axis = argument.name.split()
            roots = [root for phase in ready.work.phases for root in phase.roots]
            return ctypes.c_uint(roots[int(root)].grid["xyz".index(axis)])
        case "map":
            held = bound.tensors[argument.name]
            return map_of(held, argument.box, held.pointer)
        case "word":
            assert channel is not None
            return ctypes.c_uint64(next(iter(addresses.values()), channel.barrier(0)))
        case "report":
            assert channel is not None
            return ctypes.c_uint64(channel.there)
        case "timeout":
            seconds = ready.plan.timeout_s
            return ctypes.c_ulonglong(max(int(seconds * 1e9), 1) if seconds else 0)  # 0 is no limit
        case "buffer":
            return ctypes.c_uint64(dict(ready.buffers)[argument.name])
        case "groups":
            assert channel is not None
            return ctypes.c_uint64(channel.groups(ready.work.workers))


def map_of(held: Given, box: tuple[int, int], pointer: int) -> Any:
    """The map by which bulk copies read boxes of a matrix like this one that lies at `pointer`."""
    return _map(pointer, held.dtype, held.shape, *box)


@functools.lru_cache(maxsize=256)
def _map(pointer: int, dtype: str, shape: tuple[int, ...], rows: int, columns: int) -> Any:
    """The map of a plain matrix. It says where the cells are, not what they hold, so it stays true."""
    return driver.encode_map(pointer, dtype, (shape[0], shape[1]), shape[1] * SIZES[dtype], (rows, columns))

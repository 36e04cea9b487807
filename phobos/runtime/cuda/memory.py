"""Arrays on a device without any array library: enough to bring NumPy arrays there and back."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from phobos.runtime.cuda import driver

if TYPE_CHECKING:
    import numpy

_TYPESTR = {"bfloat16": "<V2"}


class DeviceArray:
    """A copy of a NumPy array on a device, row-major; its memory is freed with it."""

    def __init__(self, array: numpy.ndarray[Any, Any], device: int) -> None:
        import numpy

        kept = numpy.ascontiguousarray(array).reshape(array.shape)
        self.shape = tuple(kept.shape)
        self.dtype = kept.dtype
        self.device = device
        self.nbytes = kept.nbytes
        with driver.on(device):
            self.pointer = driver.allocate(kept.nbytes)
            driver.copy_in(self.pointer, kept.ctypes.data, kept.nbytes)
        weakref.finalize(self, _free, self.pointer, device)

    def put(self, array: numpy.ndarray[Any, Any]) -> None:
        """Overwrite with an array of the same shape and type."""
        import numpy

        kept = numpy.ascontiguousarray(array)
        assert kept.dtype == self.dtype and kept.nbytes == self.nbytes
        with driver.on(self.device):
            driver.copy_in(self.pointer, kept.ctypes.data, self.nbytes)

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """A copy on the host; waits for the work before it."""
        import numpy

        result = numpy.empty(self.shape, self.dtype)
        with driver.on(self.device):
            driver.synchronize()
            driver.copy_out(result.ctypes.data, self.pointer, self.nbytes)
        return result

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        typestr = _TYPESTR.get(self.dtype.name, self.dtype.str)
        return {
            "shape": self.shape,
            "typestr": typestr,
            "data": (self.pointer, False),
            "strides": None,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device


def _free(pointer: int, device: int) -> None:
    try:
        with driver.on(device):
            driver.free(pointer)
    except driver.DriverError:
        pass  # the context has gone, and the memory with it

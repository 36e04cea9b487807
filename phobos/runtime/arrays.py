"""What a runtime needs to know of an array, whoever made it: shape, element type, strides, device, address."""

from __future__ import annotations

from typing import Any

from phobos.errors import LaunchError
from phobos.runtime.device import number_of
from phobos.value import value

NAMES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8", "uint8": "u8",
    "int32": "i32", "int64": "i64", "bool": "bool", "bool_": "bool",
}  # fmt: skip
_TYPESTR = {"f2": "f16", "f4": "f32", "f8": "f64", "i1": "i8", "u1": "u8", "i4": "i32", "i8": "i64", "b1": "bool"}
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i32": 4, "i64": 8, "bool": 1}


@value
class Given:
    """An array as an argument. `strides` are in bytes; `device` is "cpu", or "cuda:N"; `pointer` an address.

    `array` is what a runtime computes on: a NumPy array where the device is the CPU, else what the caller gave.
    """

    array: Any
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    device: str
    pointer: int
    writeable: bool

    @property
    def nbytes(self) -> int:
        """From the first cell to one past the last."""
        if 0 in self.shape:
            return 0
        return SIZES[self.dtype] + sum((n - 1) * step for n, step in zip(self.shape, self.strides))

    @property
    def is_plain(self) -> bool:
        """C-contiguous, or of rank 2 with rows apart."""
        if 0 in self.shape:
            return True
        wanted = SIZES[self.dtype]
        for axis in range(len(self.shape) - 1, -1, -1):
            if self.shape[axis] != 1 and self.strides[axis] != wanted:
                pitched = len(self.shape) == 2 and axis == 0 and self.strides[0] >= wanted
                return pitched and self.strides[0] % SIZES[self.dtype] == 0
            wanted *= self.shape[axis]
        return True

    def overlaps(self, other: Given) -> bool:
        """Whether the two share memory; of matrices whose rows lie apart by different steps, whether they may."""
        if self.device != other.device or not self.nbytes or not other.nbytes:
            return False
        if not (self.pointer < other.pointer + other.nbytes and other.pointer < self.pointer + self.nbytes):
            return False
        (mine, length, step), (theirs, their_length, their_step) = self._rows, other._rows
        if step and their_step and step != their_step:
            return True
        if not (pitch := step or their_step):
            return True
        # Row i here and row j there meet where `apart + (j - i) * pitch` is above -their_length and below length.
        apart = other.pointer - self.pointer
        least = max(-(-(1 - their_length - apart) // pitch), 1 - mine)  # of j - i
        return least < theirs and apart + least * pitch < length

    @property
    def _rows(self) -> tuple[int, int, int]:
        """How many stretches without a gap the cells are, the bytes of one, and of a step to the next (0 if alone)."""
        if len(self.shape) == 2 and self.shape[0] > 1:
            length = self.shape[1] * SIZES[self.dtype]
            if self.strides[0] != length:
                return self.shape[0], length, self.strides[0]
        return 1, self.nbytes, 0


def describe(name: str, given: Any) -> Given:
    """The argument `name` as a `Given`. Raises LaunchError for what is no array of a type we know."""
    interface = getattr(given, "__cuda_array_interface__", None)
    if isinstance(interface, dict):
        return _from_interface(name, given, interface)
    where = getattr(given, "__dlpack_device__", None)
    if where is not None and not hasattr(given, "__array_interface__"):
        kind, number = where()
        if kind in (2, 13):
            return _from_attributes(name, given, f"cuda:{number}")
    import numpy as np

    if not isinstance(given, np.ndarray):
        given = _to_numpy(name, given)
    dtype = NAMES.get(given.dtype.name)
    if dtype is None or not given.dtype.isnative:
        turned = dtype is not None and not given.dtype.isnative
        why = (
            "in the other byte order: convert with .astype(dtype.newbyteorder('='))" if turned
            else f"which no tensor can have: convert to one of {', '.join(SIZES)}"
        )  # fmt: skip
        raise LaunchError(f"argument `{name}` has elements of type {given.dtype}, {why}")
    return Given(
        given, given.shape, dtype, given.strides, "cpu", given.__array_interface__["data"][0], given.flags.writeable
    )


def is_array(given: Any) -> bool:
    """Whether an argument is meant as a tensor."""
    return any(hasattr(given, name) for name in ("__cuda_array_interface__", "__dlpack__", "__array_interface__")) and (
        getattr(given, "ndim", None) != 0 or hasattr(given, "__cuda_array_interface__")
    )


def _to_numpy(name: str, given: Any) -> Any:
    import numpy as np

    if hasattr(given, "__dlpack__"):
        try:
            return np.from_dlpack(given)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            if str(getattr(given, "dtype", "")).endswith("bfloat16") and hasattr(given, "view"):
                import ml_dtypes

                return _to_numpy(name, given.view(_dtype("uint16"))).view(ml_dtypes.bfloat16)
            raise LaunchError(f"argument `{name}` cannot be read as an array: {error}") from None
    raise LaunchError(
        f"argument `{name}` is {_kind(given)}, but the parameter is a tensor: pass a NumPy, CuPy or PyTorch array"
    )


def _dtype(dtype: str) -> Any:
    """PyTorch's, where it is loaded; NumPy takes the name."""
    import sys

    torch = sys.modules.get("torch")
    return getattr(torch, dtype) if torch is not None else dtype


def _kind(given: Any) -> str:
    return "None" if given is None else f"of type {type(given).__name__}"


def _from_interface(name: str, given: Any, interface: dict[str, Any]) -> Given:
    typestr = interface["typestr"]
    dtype = _TYPESTR.get(typestr[1:])
    if str(getattr(given, "dtype", "")).endswith("bfloat16"):
        dtype = "bf16"
    if dtype is None or typestr[0] == ">":
        raise LaunchError(f"argument `{name}` has elements of type {typestr}, which no tensor can have")
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    pointer, read_only = interface["data"]
    device = getattr(given, "device", None)
    number = getattr(device, "id", getattr(device, "index", None))
    if number is None and isinstance(device, int):
        number = device
    if number is None and hasattr(given, "__dlpack_device__"):
        number = given.__dlpack_device__()[1]
    if number is None:
        number = _asked(pointer)
    return Given(
        given, shape, dtype, tuple(strides) if strides else _contiguous(shape, SIZES[dtype]), f"cuda:{number}",
        pointer, not read_only,
    )  # fmt: skip


def _asked(pointer: int) -> int:
    """The device of an array that does not say it: of its memory, else (an empty array) of the current context."""
    from phobos.runtime.cuda import driver

    found = driver.device_of_pointer(pointer) if pointer else None
    if found is None:
        found = driver.current_device()
    return found or 0


def _from_attributes(name: str, given: Any, device: str) -> Given:
    """A DLPack array on a GPU without the CUDA interface: a PyTorch tensor of bf16, say."""
    dtype = NAMES.get(str(getattr(given, "dtype", "")).rsplit(".", 1)[-1])
    pointer = getattr(given, "data_ptr", None)
    if dtype is None or pointer is None:
        raise LaunchError(f"argument `{name}` has elements of type {getattr(given, 'dtype', '?')}, which is not known")
    shape = tuple(given.shape)
    strides = tuple(step * SIZES[dtype] for step in given.stride())
    return Given(given, shape, dtype, strides, device, pointer(), True)


def _contiguous(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    strides = []
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(reversed(strides))


def in_host_memory(name: str, held: Given) -> Any:
    """The NumPy array of an argument; a copy, where it lies on a device. Raises LaunchError for rows apart there."""
    if held.device == "cpu":
        return held.array
    import numpy as np

    from phobos.runtime.cuda import driver
    from phobos.runtime.reference.numbers import DTYPES

    made = np.empty(held.shape, DTYPES[held.dtype])
    if made.nbytes and held.nbytes != made.nbytes:
        raise LaunchError(f"argument `{name}` has rows apart: give a contiguous array")
    with driver.on(number_of(held.device)):
        driver.synchronize()
        driver.copy_out(made.ctypes.data, held.pointer, made.nbytes)
    return made

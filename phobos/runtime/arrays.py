"""What a runtime needs to know of an array, whoever made it: shape, element type, strides, device, address."""

from __future__ import annotations

import sys
from typing import Any

from phobos.errors import LaunchError
from phobos.runtime.device import number_of
from phobos.value import value

NAMES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8", "uint8": "u8",
    "int32": "i32", "int64": "i64", "bool": "bool", "bool_": "bool",
}  # fmt: skip
_TYPESTR = {"f2": "f16", "f4": "f32", "f8": "f64", "i1": "i8", "u1": "u8", "i4": "i32", "i8": "i64", "b1": "bool"}
ON_CUDA = (2, 13)  # DLPack's numbers of device memory and of managed memory
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i32": 4, "i64": 8, "bool": 1}


@value
class Given:
    """An array as an argument. `strides` are in bytes; `device` is "cpu", or "cuda:N"; `pointer` an address.

    `array` is what a runtime computes on: a NumPy array where the device is the CPU, else what the caller gave.
    `stream` is the handle of the stream on which an array of no library we know says that it is worked on, and `shown`
    what keeps the memory of one that had to be exported.
    """

    array: Any
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    device: str
    pointer: int
    writeable: bool
    stream: int | None = None
    shown: object = None

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
    try:
        if library_of(given) == "torch" and hasattr(given, "data_ptr"):
            given = _plain_tensor(name, given)
            if given.device.type == "cuda":
                return _from_attributes(name, given)
        interface = getattr(given, "__cuda_array_interface__", None)
        if isinstance(interface, dict):
            return _from_interface(name, given, interface)
        where = getattr(given, "__dlpack_device__", None)
        if where is not None and not hasattr(given, "__array_interface__"):
            kind, number = where()
            if kind in ON_CUDA:
                return _exported(name, given, f"cuda:{number}")
        return _on_host(name, given)
    except LaunchError:
        raise
    except Exception as error:  # what another library says of an array that it cannot show, in types of its own
        raise LaunchError(f"argument `{name}` cannot be read as an array: {said_by(error)}") from None


def _on_host(name: str, given: Any) -> Given:
    import numpy as np

    if not isinstance(given, np.ndarray):
        given = _to_numpy(name, given)
    dtype = NAMES.get(given.dtype.name)
    if dtype is None or not given.dtype.isnative:
        turned = dtype is not None and not given.dtype.isnative
        if not turned:
            raise _unknown_type(name, given.dtype)
        raise LaunchError(
            f"argument `{name}` has elements of type {given.dtype}, in the other byte order: convert with "
            ".astype(dtype.newbyteorder('='))"
        )
    return Given(
        given, given.shape, dtype, given.strides, "cpu", given.__array_interface__["data"][0], given.flags.writeable
    )


def library_of(given: object) -> str:
    """The library that an array comes from, "torch" or "cupy", subclasses included; "" where it is another's."""
    for kind in type(given).__mro__:
        library = kind.__module__.partition(".")[0]
        if library in ("torch", "cupy"):
            return library
    return ""


def _plain_tensor(name: str, given: Any) -> Any:
    """A tensor of PyTorch as its cells alone. Raises LaunchError for one that stands for more than those."""
    if given.requires_grad:
        if loses_gradient(given):
            raise LaunchError(
                f"argument `{name}` requires a gradient, which would be lost: pass `.detach()` of it, or launch under "
                "torch.no_grad()"
            )
        given = given.detach()
    if given.is_nested:
        raise LaunchError(f"argument `{name}` is nested: pass one of its tensors, or what `.to_padded_tensor(0)` gives")
    if str(given.layout) != "torch.strided":
        raise LaunchError(f"argument `{name}` has the layout {given.layout}: pass what its `.to_dense()` gives")
    if _tensor_type(given) is None:
        raise _unknown_type(name, given.dtype)
    if given.is_neg():
        raise LaunchError(f"argument `{name}` is the negation of what is in memory: pass what `.resolve_neg()` gives")
    return given


def loses_gradient(given: Any) -> bool:
    """Whether PyTorch is recording what is done with a tensor, and would not see what a kernel does."""
    torch = sys.modules.get("torch")
    return bool(given.requires_grad) and (torch is None or bool(torch.is_grad_enabled()))


def _tensor_type(given: Any) -> str | None:
    return NAMES.get(str(given.dtype).removeprefix("torch."))


def _from_attributes(name: str, given: Any) -> Given:
    """A tensor of PyTorch on a GPU, which shows bf16, and what it records, by no interface."""
    dtype = _tensor_type(given)
    assert dtype is not None
    strides = tuple(int(step) * SIZES[dtype] for step in given.stride())
    shape, device = tuple(map(int, given.shape)), f"cuda:{given.device.index}"
    pointer = given.data_ptr()
    if not pointer and 0 not in shape:  # it stands for a tensor, while something is traced
        raise _nowhere(name, shape)
    return Given(given, shape, dtype, strides, device, pointer, True)


def _nowhere(name: str, shape: object) -> LaunchError:
    return LaunchError(f"argument `{name}` of shape {shape} has no memory: its address is 0")


def read(given: Any) -> Any:
    """The number that an array of no axis holds, of any library. What is none stays what it is.

    Raises ValueError where it lies on a device and the work there is being captured, which reading would end.
    """
    if not hasattr(given, "item"):
        return given
    library = library_of(given)
    place: Any = getattr(given, "device", None)
    if library == "cupy" or (library == "torch" and place.type == "cuda"):
        number = place.id if library == "cupy" else place.index
        from phobos.runtime.cuda import driver
        from phobos.runtime.cuda.streams import stream_of

        with driver.on(number):
            if driver.capture_of(stream_of(None, library, number)) is not None:
                raise ValueError("it lies on a GPU, and a graph is being captured there")
    return given.item()


def _unknown_type(name: str, dtype: object) -> LaunchError:
    return LaunchError(
        f"argument `{name}` has elements of type {dtype}, which no tensor can have: convert to one of "
        f"{', '.join(SIZES)}"
    )


def said_by(error: Exception) -> str:
    """What an error of somebody else says, in a line."""
    text = str(error).strip().splitlines()
    kind = "" if isinstance(error, (RuntimeError, BufferError)) and text else type(error).__name__
    return ": ".join(part for part in (kind, *text[:1]) if part)


def is_array(given: object) -> bool:
    """Whether something is an array, of any library: what that one says of this very array is not asked."""
    names = ("__cuda_array_interface__", "__dlpack__", "__array_interface__")
    return any(hasattr(type(given), name) for name in names)


def _to_numpy(name: str, given: Any) -> Any:
    import numpy as np

    if hasattr(given, "__dlpack__"):
        try:
            return np.from_dlpack(given)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            if str(getattr(given, "dtype", "")).endswith("bfloat16") and hasattr(given, "view"):
                import ml_dtypes

                return _to_numpy(name, given.view(_dtype("uint16"))).view(ml_dtypes.bfloat16)
            raise LaunchError(f"argument `{name}` cannot be read as an array: {said_by(error)}") from None
    raise LaunchError(
        f"argument `{name}` is {_kind(given)}, but the parameter is a tensor: pass a NumPy, CuPy or PyTorch array"
    )


def _dtype(dtype: str) -> Any:
    """PyTorch's, where it is loaded; NumPy takes the name."""
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
        raise _unknown_type(name, typestr)
    if interface.get("mask") is not None:
        raise LaunchError(f"argument `{name}` has a mask, which no kernel looks at: pass an array without one")
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    pointer, read_only = interface["data"]
    if not pointer and 0 not in shape:
        raise _nowhere(name, shape)
    device = getattr(given, "device", None)
    number = getattr(device, "id", getattr(device, "index", None))
    if number is None and isinstance(device, int):
        number = device
    if number is None and hasattr(given, "__dlpack_device__"):
        number = given.__dlpack_device__()[1]
    if number is None:
        number = _asked(name, pointer)
    stream = None if library_of(given) else interface.get("stream")  # those two say which one is current
    return Given(
        given, shape, dtype, tuple(strides) if strides else _contiguous(shape, SIZES[dtype]), f"cuda:{number}",
        pointer or 0, not read_only, stream if isinstance(stream, int) and stream > 0 else None,
    )  # fmt: skip


def _asked(name: str, pointer: int) -> int:
    """The device of an array that does not say it: of its memory, else (an empty array) of the current context. Raises
    LaunchError where that memory is the host's."""
    from phobos.runtime.cuda import driver

    found = driver.device_of_pointer(pointer) if pointer else None
    if found is None:
        found = driver.current_device() or 0
        if pointer and driver.is_of_the_host(pointer, found):
            raise LaunchError(f"argument `{name}` says that it lies on a GPU, but CUDA does not know its memory")
    return found


def _exported(name: str, given: Any, device: str) -> Given:
    """An array on a GPU that shows itself by DLPack alone."""
    from phobos.runtime import dlpack

    shown = dlpack.exported(given)
    name_of = dlpack.NAMES.get(shown.type)
    if name_of is None:
        raise _unknown_type(name, dlpack.spelled(shown.type))
    size = SIZES[name_of]
    strides = _contiguous(shown.shape, size) if shown.steps is None else tuple(step * size for step in shown.steps)
    return Given(given, shown.shape, name_of, strides, device, shown.pointer, not shown.read_only, None, shown.capsule)


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

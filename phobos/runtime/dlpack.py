"""What a DLPack capsule says of an array on a GPU: the layout of its structures, as `dlpack.h` lays them down.

NumPy reads the capsules of host memory. Those of a device are read here, so that arrays of any library are taken
without that library and without a copy.
"""

from __future__ import annotations

import ctypes
from typing import Any

from phobos.value import value

NAMES = {
    (2, 16): "f16", (4, 16): "bf16", (2, 32): "f32", (2, 64): "f64", (0, 8): "i8", (1, 8): "u8", (0, 32): "i32",
    (0, 64): "i64", (6, 8): "bool",
}  # fmt: skip
"""Element types of the language, by DLPack's code and bits."""
_CODES = ("int", "uint", "float", "handle", "bfloat", "complex", "bool")
LEGACY_STREAM = 1
READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


@value
class Exported:
    """`steps` are in elements, None for row-major; `capsule` keeps the memory where it is, as long as it is held."""

    pointer: int
    type: tuple[int, int]
    shape: tuple[int, ...]
    steps: tuple[int, ...] | None
    read_only: bool
    capsule: object


def exported(given: Any) -> Exported:
    """An array as its own library exports it, in the order of the legacy stream. Raises ValueError for a capsule that
    is none, and whatever that library raises."""
    try:
        capsule = given.__dlpack__(stream=LEGACY_STREAM, max_version=(1, 0))
    except TypeError:  # it is older than versions
        capsule = given.__dlpack__(stream=LEGACY_STREAM)
    flags = 0
    if _is(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise ValueError(f"it is exported as DLPack {managed.major}.{managed.minor}, and 1 is read here")
        tensor, flags = managed.tensor, managed.flags
    elif _is(capsule, b"dltensor"):
        tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    else:
        raise ValueError("`__dlpack__` gives no DLPack capsule")
    rank = tensor.ndim
    bits = tensor.bits if tensor.lanes == 1 else 0  # several numbers in one element: no type of ours
    return Exported(
        (tensor.data or 0) + tensor.byte_offset, (tensor.code, bits), tuple(tensor.shape[:rank]),
        tuple(tensor.strides[:rank]) if tensor.strides else None, bool(flags & READ_ONLY), capsule,
    )  # fmt: skip


def spelled(type: tuple[int, int]) -> str:
    """An element type in words."""
    code, bits = type
    return f"{_CODES[code] if code < len(_CODES) else f'DLPack {code},'}{bits or ' vectors'}"


def _is(capsule: object, name: bytes) -> bool:
    return bool(ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(capsule), name))


def _pointer(capsule: object, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name))

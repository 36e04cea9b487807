"""What comes out of a run: figures and digests of arrays, files that are whole or not there at all."""

from __future__ import annotations

import hashlib
import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

from phobos import files
from phobos.errors import InputError
from phobos.runtime.arrays import SIZES
from phobos.runtime.binding import Bound
from phobos.runtime.conditions import stored_tensors
from phobos.semantics import ir
from phobos.semantics.walking import everything_in, statements_of
from phobos.value import value


@value
class Summary:
    """`low`, `high`, `mean` are None for an empty array. The digest is of the cells in row-major order."""

    shape: tuple[int, ...]
    dtype: str
    low: float | None
    high: float | None
    mean: float | None
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape),
            "dtype": self.dtype,
            "min": _jsonable(self.low),
            "max": _jsonable(self.high),
            "mean": _jsonable(self.mean),
            "sha256": self.sha256,
        }


def summary(array: Any, dtype: str) -> Summary:
    """`dtype` is the language's name of the element type."""
    cells = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    digest = hashlib.sha256(cells.data).hexdigest()
    if not array.size:
        return Summary(array.shape, dtype, None, None, None, digest)
    wide = array if array.dtype.kind in "iub" or array.dtype == np.float64 else array.astype(np.float64)
    return Summary(array.shape, dtype, float(wide.min()), float(wide.max()), float(wide.mean(dtype=np.float64)), digest)


def save(path: str, array: Any) -> None:
    """Write a `.npy` file in one step: after Ctrl-C it is whole or not there. Raises InputError."""
    files.save(path, lambda stream: np.save(stream, array, allow_pickle=False))


def writable(path: str) -> None:
    """Raises InputError early, before a long run, where `path` cannot be written."""
    target = Path(path)
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: is a directory, a file name is needed")
    if not stat.S_ISREG(mode):
        return  # a device or a pipe takes what it is sent
    if not target.resolve().parent.is_dir():
        raise InputError(f"{path}: there is no directory {target.resolve().parent}")
    if not os.access(target.resolve().parent, os.W_OK):
        raise InputError(f"{path}: the directory cannot be written to")


def bytes_moved(bound: Bound) -> int:
    """Bytes that a kernel must move at least: each tensor it reads once, each tensor it writes once."""
    read: set[str] = set()
    for statement in statements_of(bound.program.body):
        for part in everything_in(statement):
            if isinstance(part, ir.Load) and isinstance(part.access.base, ir.Tensor):
                read.add(part.access.base.name)
            elif isinstance(part, ir.TensorRef):
                read.add(part.tensor.name)
        if isinstance(statement, ir.DefineView) and isinstance(statement.access.base, ir.Tensor):
            read.add(statement.access.base.name)
    stored = set(stored_tensors(bound.program))
    return sum(held.nbytes * ((name in read) + (name in stored)) for name, held in bound.tensors.items())


def size_of(shape: tuple[int, ...], dtype: str) -> int:
    return math.prod(shape) * SIZES[dtype]


def _jsonable(number: float | None) -> float | str | None:
    """JSON has no NaN and no infinity."""
    if number is None or math.isfinite(number):
        return number
    return str(number)

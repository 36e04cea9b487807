"""Arguments as text: `zeros`, `random:seed=7`, `@file.npy`, `2.5`; and the extents and constants beside them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from phobos.errors import InputError
from phobos.language.near import nearest
from phobos.runtime.binding import barrier_tensors
from phobos.runtime.output import size_of
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.value import value

_FILLS = ("zeros", "ones", "iota", "random", "normal")
_DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8,
    "i32": np.int32, "i64": np.int64, "bool": np.bool_,
}  # fmt: skip
MOST_BYTES = 1 << 36


@value
class Arguments:
    """Everything for one call: arrays and numbers by parameter name."""

    arrays: dict[str, Any]
    numbers: dict[str, Any]


def constants_in(program: Program, names: Mapping[str, str]) -> dict[str, int]:
    """The constants of a kernel among names and texts."""
    return {name: integer(name, names[name]) for name in names if name in program.constants}


def directories(names: Iterable[str], command_line: Container[str], file: str) -> dict[str, str]:
    """What the path of each name's array is relative to: the working directory for a name that the command line
    gives, `file` (a folder) for one that the header of a .ph file in it gives."""
    return {name: "." if name in command_line else file for name in names}


def arguments(
    program: Program, names: Mapping[str, str], seed: int, directories: Mapping[str, str],
    constants: Mapping[str, int], *, mapped: bool = False,
) -> Arguments:  # fmt: skip
    """Arrays and numbers out of names and texts. Raises InputError with the name and what to write instead.

    `seed` is for arrays without one of their own; `directories` says, by name, what the path of a file is relative to.
    `mapped` leaves what is in `.npy` files there: the arrays are maps of the files, which only reading brings in.
    """
    known = {*program.tensors, *program.params, *program.dims, *program.constants}
    for name in names:
        if name not in known:
            near = nearest(name, known)
            raise InputError(
                f"`{program.name}` has no parameter, extent or constant `{name}`"
                + (f": did you mean `{near}`?" if near else f" (it has {', '.join(sorted(known)) or 'none'})")
            )
    dims = {name: extent(name, names[name]) for name in program.dims if name in names}
    numbers: dict[str, Any] = {}
    for parameter in program.params.values():
        text = names.get(parameter.name)
        if text is None:
            if parameter.name in dims:
                numbers[parameter.name] = dims[parameter.name]
                continue
            raise InputError(
                f"parameter `{parameter.name}` ({parameter.dtype}) of `{program.name}` is not given: "
                f"--arg {parameter.name}=NUMBER"
            )
        numbers[parameter.name] = number(parameter.name, parameter.dtype, text)
    barriers = barrier_tensors(program)
    files: dict[str, Any] = {}
    for tensor in program.tensors.values():
        text = names.get(tensor.name)
        if text is not None and text.startswith("@"):
            files[tensor.name] = held = _file(tensor, text[1:], directories[tensor.name], mapped)
            for axis, size in enumerate(tensor.extents):
                if not isinstance(size, ir.Dim) or axis >= held.ndim:
                    continue
                if dims.setdefault(size.name, held.shape[axis]) != held.shape[axis]:
                    raise InputError(
                        f"`{size.name}` is {dims[size.name]}, but axis {axis} of `{tensor.name}` ({text}) is "
                        f"{held.shape[axis]}"
                    )
    arrays: dict[str, Any] = {}
    for tensor in program.tensors.values():
        text = names.get(tensor.name)
        if text is None:
            if tensor.name in barriers:
                continue
            raise InputError(
                f"tensor `{tensor.name}` of `{program.name}` is not given: "
                f"--arg {tensor.name}=zeros|ones|iota|random|normal|@file.npy|NUMBER"
            )
        arrays[tensor.name] = files[tensor.name] if tensor.name in files else _fill(tensor, text, dims, constants, seed)
    return Arguments(arrays, numbers)


def integer(name: str, text: str) -> int:
    """A whole number of any size, as Python or C writes it. Raises InputError."""
    try:
        return int(text.replace("_", ""), 0)
    except ValueError:
        raise InputError(f"`{name}` is {text!r}, but it must be an integer") from None


def extent(name: str, text: str) -> int:
    """The length of an axis. Raises InputError."""
    size = integer(name, text)
    if size < 0:
        raise InputError(f"extent `{name}` is {size}, but it cannot be negative")
    return size


def number(name: str, dtype: str, text: str) -> Any:
    """A scalar argument."""
    try:
        if dtype == "bool":
            return {"true": True, "false": False, "1": True, "0": False}[text]
        if dtype in ("f16", "bf16", "f32", "f64"):
            return float(text)
        return int(text.replace("_", ""), 0)
    except (KeyError, ValueError):
        raise InputError(f"parameter `{name}` is {text!r}, the kernel declares {dtype}") from None


def _shape(tensor: ir.Tensor, dims: Mapping[str, int], constants: Mapping[str, int]) -> tuple[int, ...]:
    sizes = []
    for size in tensor.extents:
        if isinstance(size, ir.Dim):
            if size.name not in dims:
                raise InputError(
                    f"extent `{size.name}` of `{tensor.name}` is not given: --set {size.name}=INT, or an array from "
                    "a file"
                )
            sizes.append(dims[size.name])
        else:
            sizes.append(size if isinstance(size, int) else constants.get(size.name, size.value))
    return tuple(sizes)


def _fill(tensor: ir.Tensor, text: str, dims: Mapping[str, int], constants: Mapping[str, int], seed: int) -> Any:
    kind, colon, option = text.partition(":")
    own = seed
    if colon:
        key, equals, given = option.partition("=")
        if kind not in ("random", "normal") or key != "seed" or not equals or not given.isdecimal():
            raise InputError(f"cannot read {text!r} for tensor `{tensor.name}`: only `{kind}:seed=N` may follow")
        own = int(given)
    dtype = np.dtype(_DTYPES[tensor.dtype])
    fill: float | None = None
    if kind not in _FILLS:
        try:
            fill = float(text) if dtype.kind != "i" and dtype.kind != "u" else int(text, 0)
        except ValueError:
            near = nearest(kind, _FILLS)
            raise InputError(
                f"cannot read {text!r} for tensor `{tensor.name}`: write {'|'.join(_FILLS)}, @file.npy or a number"
                + (f"; did you mean `{near}`?" if near else "")
            ) from None
    shape = _shape(tensor, dims, constants)
    if size_of(shape, tensor.dtype) > MOST_BYTES:
        raise InputError(f"tensor `{tensor.name}` of shape {shape} would take {size_of(shape, tensor.dtype):,} bytes")
    try:
        if fill is not None:
            return np.full(shape, fill, dtype)
        return _made(kind, shape, dtype, own)
    except MemoryError:
        raise InputError(
            f"tensor `{tensor.name}` of shape {shape} takes {size_of(shape, tensor.dtype):,} bytes, which this machine "
            "does not have"
        ) from None
    except OverflowError:
        raise InputError(f"tensor `{tensor.name}` is {text}, which {tensor.dtype} cannot hold") from None


def _made(kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> Any:
    match kind:
        case "zeros":
            return np.zeros(shape, dtype)
        case "ones":
            return np.ones(shape, dtype)
        case "iota":
            count = int(np.prod(shape, dtype=np.int64))
            with np.errstate(over="ignore", invalid="ignore"):
                return np.arange(count, dtype=np.int64).reshape(shape).astype(dtype)
    generator = np.random.default_rng(seed)
    if dtype.kind in "iub":
        return generator.integers(0, 10, shape).astype(dtype)
    drawn = generator.random(shape) if kind == "random" else generator.standard_normal(shape)
    return drawn.astype(dtype)


def _file(tensor: ir.Tensor, name: str, directory: str, mapped: bool) -> Any:
    path, key = name, None
    if ".npz:" in name:
        path, _, key = name.rpartition(":")
    said = f"tensor `{tensor.name}`: {path}"
    try:
        held = _loaded(Path(directory) / path, path, key, mapped)
        if held.dtype.kind == "O":
            raise InputError(PICKLED)
    except InputError as error:
        raise InputError(f"{said}: {error}") from None
    except FileNotFoundError:
        raise InputError(f"{said}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{said}: is a directory, a .npy or .npz file is needed") from None
    except OSError as error:
        raise InputError(f"{said}: cannot be read: {error.strerror or 'not a .npy file'}") from None
    except Exception as error:  # neither numpy nor zipfile has one error for a broken file
        first = str(error).partition("\n")[0]
        why = PICKLED if first.startswith("Object arrays") else f"cannot be read as an array: {first[:200]}"
        raise InputError(f"{said}: {why}") from None
    if tensor.dtype == "bf16" and held.dtype.kind in "Vu" and held.dtype.itemsize == 2:
        held = held.view(ml_dtypes.bfloat16)  # NumPy's files know bf16 as two bytes
    if isinstance(held, np.memmap) and held.flags.c_contiguous:
        return held
    return np.ascontiguousarray(held) if held.ndim else held


PICKLED = "holds pickled objects, which are not read"


def _loaded(path: Path, name: str, key: str | None, mapped: bool) -> np.ndarray[Any, Any]:
    """The array of a file, of which `name` is what the user called it. Raises what `open`, numpy and zipfile do."""
    if path.exists() and not path.is_file() and not path.is_dir():  # opening a pipe may never end
        raise InputError("is neither a file nor a link to one")
    with path.open("rb") as stream:
        start = stream.read(6)
    if start != b"\x93NUMPY" and start[:4] not in (b"PK\3\4", b"PK\5\6"):
        raise InputError("is neither a .npy nor a .npz file")
    held = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    if isinstance(held, np.ndarray):
        if key is not None:
            raise InputError(f"is one array, leave `:{key}` out")
        return held
    with held:
        listed = ", ".join(held.files)
        if key is None:
            raise InputError(f"holds several arrays ({listed}): write @{name}:NAME")
        if key not in held.files:
            raise InputError(f"has no array `{key}` (it has {listed})")
        member = held[key]
    if not isinstance(member, np.ndarray):
        raise InputError(f"`{key}` is no array")
    return member

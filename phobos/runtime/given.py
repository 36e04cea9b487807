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
from phobos.runtime.memory import memory_bytes
from phobos.runtime.output import size_of
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.syntax.headers import FILLS
from phobos.value import value

_DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8,
    "i32": np.int32, "i64": np.int64, "bool": np.bool_,
}  # fmt: skip
MOST_BYTES = 1 << 36  # of all arrays together, where the system does not say how much memory it has


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
    constants: Mapping[str, int], *, weak: Container[str] = (), mapped: bool = False,
) -> Arguments:  # fmt: skip
    """Arrays and numbers out of names and texts. Raises InputError with the name and what to write instead.

    `seed` is for arrays without one of their own; `directories` says, by name, what the path of a file is relative to.
    `weak` are names that a header gives: extents of a file that the command line gives win over those among them.
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
    files, outvoted = _files(program, names, dims, directories, weak, mapped)
    numbers: dict[str, Any] = {}
    for parameter in program.params.values():
        text = names.get(parameter.name)
        if text is None or parameter.name in outvoted:
            if parameter.name in dims:
                numbers[parameter.name] = dims[parameter.name]
                continue
            raise InputError(
                f"parameter `{parameter.name}` ({parameter.dtype}) of `{program.name}` is not given: "
                f"--arg {parameter.name}=NUMBER"
            )
        numbers[parameter.name] = number(parameter.name, parameter.dtype, text)
    barriers = barrier_tensors(program)
    fillings: dict[str, tuple[tuple[int, ...], tuple[str, int, float | None]]] = {}
    for tensor in program.tensors.values():
        text = names.get(tensor.name)
        if text is None:
            if tensor.name in barriers:
                continue
            raise InputError(
                f"tensor `{tensor.name}` of `{program.name}` is not given: "
                f"--arg {tensor.name}={'|'.join(FILLS)}|@file.npy|NUMBER"
            )
        if tensor.name not in files:
            fillings[tensor.name] = _shape(tensor, dims, constants), _filling(tensor, text, seed)
    _demand_memory(program, {name: shape for name, (shape, _) in fillings.items()})
    arrays = {
        tensor.name: files[tensor.name] if tensor.name in files
        else _filled(tensor, names[tensor.name], *fillings[tensor.name])
        for tensor in program.tensors.values() if tensor.name in files or tensor.name in fillings
    }  # fmt: skip
    return Arguments(arrays, numbers)


def _files(
    program: Program, names: Mapping[str, str], dims: dict[str, int], directories: Mapping[str, str],
    weak: Container[str], mapped: bool,
) -> tuple[dict[str, Any], set[str]]:  # fmt: skip
    """The arrays that come from files, whose extents are put into `dims`; and which of those they have outvoted."""
    files: dict[str, Any] = {}
    outvoted: set[str] = set()
    asked = [tensor for tensor in program.tensors.values() if names.get(tensor.name, "").startswith("@")]
    for tensor in sorted(asked, key=lambda tensor: tensor.name in weak):
        text = names[tensor.name]
        files[tensor.name] = held = _file(tensor, text[1:], directories[tensor.name], mapped)
        if held.ndim != len(tensor.extents):
            continue  # refused where it is bound, if all extents are known without it
        for axis, size in enumerate(tensor.extents):
            if not isinstance(size, ir.Dim):
                continue
            length = held.shape[axis]
            if size.name in weak and size.name not in outvoted and tensor.name not in weak:
                dims[size.name] = length
                outvoted.add(size.name)
            if dims.setdefault(size.name, length) != length:
                raise InputError(
                    f"`{size.name}` is {dims[size.name]}, but axis {axis} of `{tensor.name}` ({text}) is {length}"
                )
    for tensor in asked:
        shape, rank = files[tensor.name].shape, len(tensor.extents)
        if len(shape) != rank and any(isinstance(e, ir.Dim) and e.name not in dims for e in tensor.extents):
            raise InputError(
                f"tensor `{tensor.name}`: {names[tensor.name][1:]} has shape {shape}, the kernel declares rank {rank}"
            )
    return files, outvoted


def _demand_memory(program: Program, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse what cannot fit before any of it is made. Raises InputError."""
    sizes = {name: size_of(shape, program.tensors[name].dtype) for name, shape in shapes.items()}
    most, needed = memory_bytes(), sum(sizes.values())
    if needed > (MOST_BYTES if most is None else most):
        largest = max(sizes, key=lambda name: sizes[name])
        together = "" if needed == sizes[largest] else f", all of them {needed:,}"
        free = "" if most is None else f"; {most:,} are free here"
        raise InputError(
            f"tensor `{largest}` of shape {shapes[largest]} would take {sizes[largest]:,} bytes{together}{free}"
        )


def integer(name: str, text: str) -> int:
    """A whole number of 64 bits, as Python or C writes it. Raises InputError."""
    try:
        number = int(text.replace("_", ""), 0)
    except ValueError:
        raise InputError(f"`{name}` is {text!r}, but it must be an integer") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise InputError(f"`{name}` is {text}, which does not fit in 64 bits")
    return number


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


def _filling(tensor: ir.Tensor, text: str, seed: int) -> tuple[str, int, float | None]:
    """What a tensor is filled with: a kind and its seed, or a number."""
    kind, colon, option = text.partition(":")
    own = seed
    if colon:
        key, equals, given = option.partition("=")
        if kind not in ("random", "normal") or key != "seed" or not equals or not given.isdecimal():
            raise InputError(f"cannot read {text!r} for tensor `{tensor.name}`: only `{kind}:seed=N` may follow")
        own = int(given)
    if kind in FILLS:
        return kind, own, None
    whole = tensor.dtype in ("i8", "u8", "i32", "i64")
    try:
        return "", own, int(text, 0) if whole else float({"true": "1", "false": "0"}.get(text, text))
    except ValueError:
        near = nearest(kind, FILLS)
        raise InputError(
            f"cannot read {text!r} for tensor `{tensor.name}` ({tensor.dtype}): write {'|'.join(FILLS)}, @file.npy or "
            f"a {'whole ' * whole}number" + (f"; did you mean `{near}`?" if near else "")
        ) from None


def _filled(tensor: ir.Tensor, text: str, shape: tuple[int, ...], filling: tuple[str, int, float | None]) -> Any:
    kind, seed, number = filling
    dtype = np.dtype(_DTYPES[tensor.dtype])
    try:
        if number is None:
            return _made(kind, shape, dtype, seed)
        with np.errstate(over="ignore"):  # 1e6 is infinite in f16
            return np.full(shape, number, dtype)
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
    if not path:
        raise InputError(f"tensor `{tensor.name}`: `@` needs the name of a .npy or .npz file behind it")
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

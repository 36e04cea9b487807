"""A kernel on the shards of its arrays: one task a shard, on whichever worker is free, put together as dask arrays.

What a task needs lies in the graph or in a file, so a worker that leaves takes nothing with it that is not computed
again. A shard's arrays are slices with as much of their neighbours as its blocks may look at; tensors without the
dimension go whole to every shard.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phobos.errors import InputError, KernelFault, LaunchError
from phobos.runtime.arrays import NAMES
from phobos.runtime.binding import Bound
from phobos.runtime.cluster.pieces import Pieces, pieces_of
from phobos.runtime.conditions import aligned
from phobos.runtime.device import driver, number_of
from phobos.runtime.faults import refusal
from phobos.semantics.shards import Cut, Tied, cuts_of
from phobos.value import replace, value

if TYPE_CHECKING:
    from phobos.runtime.cluster.connect import Worker
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.options import LaunchOptions

REFERENCE = "reference runtime"
SOMEWHERE = 4096  # the address of an array that is not here yet
_TYPESTR = {
    "f16": "<f2", "bf16": "<V2", "f32": "<f4", "f64": "<f8", "i8": "|i1", "u8": "|u1", "i32": "<i4", "i64": "<i8",
    "bool": "|b1",
}  # fmt: skip


@value
class Job:
    """All that a worker needs beside the arrays. `device` is "auto", "cpu" or "cuda"."""

    path: str
    text: str
    kernel: str
    options: LaunchOptions
    device: str
    numbers: dict[str, Any]
    cut: Cut
    pieces: Pieces
    halves: tuple[str, ...]  # tensors of bf16, which travel as 16-bit integers


@value
class Sharded:
    """`arrays` are dask arrays of what the kernel writes, not computed yet."""

    bound: Bound
    cut: Cut
    pieces: Pieces
    arrays: dict[str, Any]


def sharded(
    kernel: Kernel, arrays: Mapping[str, Any], numbers: Mapping[str, Any], dim: str, parts: int,
    options: LaunchOptions, device: str = "auto",
) -> Sharded:  # fmt: skip
    """The kernel on `parts` shards along `dim`. Raises CheckError, LaunchError where it cannot be cut there."""
    bound = kernel.bound((), {**_shapes(arrays), **numbers}, dict(options.constants))
    cut = cut_at(bound, dim)
    aligned(bound)
    if options.grid is not None:
        raise LaunchError("a grid cannot be given to shards: each has the blocks that its extents need")
    pieces = pieces_of(cut, bound.dims[dim], parts)
    halves = tuple(name for name, held in bound.tensors.items() if held.dtype == "bf16")
    job = Job(kernel.path, kernel.text, kernel.name, options, device, dict(numbers), cut, pieces, halves)
    return Sharded(bound, cut, pieces, _graph(job, bound, arrays))


def cut_at(bound: Bound, dim: str) -> Cut:
    """How the kernel is cut along a dimension. Raises LaunchError with the place of what ties it together."""
    known = cuts_of(bound.program)
    if dim not in known:
        raise LaunchError(f"`{bound.program.name}` has no extent `{dim}` (it has {', '.join(known) or 'none'})")
    found = known[dim]
    if isinstance(found, Tied):
        others = [name for name, cut in known.items() if isinstance(cut, Cut)]
        raise refusal(
            bound.module, bound.unit, None, f"`{bound.program.name}` cannot be cut along `{dim}`: {found.reason}",
            found.span, help=f"it can be cut along {' or '.join(f'`{name}`' for name in others)}" if others else None,
        )  # fmt: skip
    return found


class _Shape:
    """An array's shape and type as an argument, without the array."""

    device = 0

    def __init__(self, array: Any) -> None:
        self.dtype = array.dtype
        name = NAMES.get(array.dtype.name)
        typestr = array.dtype.str if name is None else _TYPESTR[name]
        self.__cuda_array_interface__ = {
            "shape": tuple(int(n) for n in array.shape), "typestr": typestr, "data": (SOMEWHERE, False),
            "strides": None, "version": 3,
        }  # fmt: skip


def _shapes(arrays: Mapping[str, Any]) -> dict[str, Any]:
    for name, array in arrays.items():
        if any(math.isnan(n) for n in getattr(array, "shape", ())):
            raise LaunchError(f"argument `{name}` has chunks of unknown size: `compute_chunk_sizes()` first")
        if not hasattr(array, "dtype"):
            raise LaunchError(f"argument `{name}` is of type {type(array).__name__}, arrays are needed")
    return {name: _Shape(array) for name, array in arrays.items()}


# --- the graph ----------------------------------------------------------------------------------------------------


def _graph(job: Job, bound: Bound, arrays: Mapping[str, Any]) -> dict[str, Any]:
    import dask
    import dask.array as da
    import numpy as np

    cut, pieces = job.cut, job.pieces
    wholes: dict[str, Any] = {}
    slices: dict[str, list[Any]] = {}
    metas: dict[str, Any] = {}
    for name, given in arrays.items():
        array = given if isinstance(given, da.Array) else None
        metas[name] = np.empty(0, given.dtype) if array is None else array._meta
        if name in job.halves:
            metas[name] = np.empty(0, np.uint16)
        axis = cut.axes.get(name)
        if axis is None:
            wholes[name] = _whole(given, name in job.halves)
            continue
        chunks = tuple(pieces.sizes if at == axis else (int(n),) for at, n in enumerate(given.shape))
        if array is None:
            array = da.from_array(_source(given, name in job.halves), chunks=chunks, asarray=False, fancy=False,
                                  meta=metas[name].reshape((0,) * len(chunks)), name=False)  # fmt: skip
        else:
            array = array.rechunk(chunks)
            if name in job.halves:
                array = array.map_blocks(_as_integers, dtype=np.uint16)
        if len(pieces.sizes) > 1 and (pieces.below or pieces.above):
            depth = {at: (pieces.below, pieces.above) if at == axis else (0, 0) for at in range(array.ndim)}
            array = da.overlap.overlap(array, depth, dict.fromkeys(depth, "none"), allow_rechunk=False)
        slices[name] = list(array.to_delayed().ravel())
    whole = {name: dask.delayed(held, pure=False, traverse=False) for name, held in wholes.items()}
    task = dask.delayed(run, pure=False, nout=len(cut.stored))
    done = []
    for at in range(len(pieces.sizes)):
        parts = {**whole, **{name: held[at] for name, held in slices.items()}}
        done.append(task(job, at, list(parts), *parts.values(), dask_key_name=f"{job.kernel}-{_token()}-{at}"))
    results: dict[str, Any] = {}
    for number, name in enumerate(cut.stored):
        held, axis = bound.tensors[name], cut.axes[name]
        shapes = [tuple(n if i == axis else e for i, e in enumerate(held.shape)) for n in pieces.sizes]
        meta = metas[name]
        cells = [
            da.from_delayed(part[number], shape, meta=meta.reshape((0,) * len(shape)), name=False)
            for part, shape in zip(done, shapes)
        ]
        results[name] = da.concatenate(cells, axis=axis)
        if name in job.halves:
            results[name] = results[name].map_blocks(_as_halves, dtype=_bf16())
    return results


def _token() -> str:
    from uuid import uuid4

    return uuid4().hex[:8]


def _bf16() -> Any:
    import ml_dtypes
    import numpy as np

    return np.dtype(ml_dtypes.bfloat16)


def _as_integers(array: Any) -> Any:
    return array.view("uint16")


def _as_halves(array: Any) -> Any:
    return array.view(_bf16())


class Mapped:
    """An array in a `.npy` file, read where it is needed: a worker reads its own slice of it and no more."""

    def __init__(self, path: str, offset: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.path, self.offset, self.shape, self.dtype = path, offset, shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, index: Any) -> Any:
        import numpy as np

        try:
            return np.array(np.memmap(self.path, self.dtype, "r", self.offset, self.shape)[index])
        except (OSError, ValueError) as error:
            raise InputError(
                f"{self.path}: a worker cannot read it: {getattr(error, 'strerror', None) or error}; the workers of a "
                "cluster need the file under the same name"
            ) from None


def _source(array: Any, half: bool) -> Any:
    import numpy as np

    if isinstance(array, np.memmap) and array.filename is not None and array.flags.c_contiguous:
        dtype = np.dtype(np.uint16) if half else array.dtype
        return Mapped(str(Path(array.filename).resolve()), array.offset, array.shape, dtype)
    return array.view("uint16") if half else array


def _whole(array: Any, half: bool) -> Any:
    """For a tensor without the dimension."""
    import dask.array as da

    if isinstance(array, da.Array):
        if half:
            array = array.map_blocks(_as_integers, dtype="uint16")
        return array.rechunk(-1).to_delayed().ravel()[0]
    return _source(array, half)


# --- on a worker --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _kernel(path: str, text: str, name: str) -> Kernel:
    from phobos.runtime.kernel import Kernel

    return Kernel(path, text, name)


def run(job: Job, at: int, names: list[str], *given: Any) -> tuple[Any, ...]:
    """One shard: the cells of each stored tensor that are its own. What is given stays as it was."""
    kernel = _kernel(job.path, job.text, job.kernel)
    arrays: dict[str, Any] = {}
    for name, held in zip(names, given):
        array = held[()] if isinstance(held, Mapped) else held
        if name in job.halves and array.dtype.itemsize == 2:
            array = array.view(_bf16())
        arrays[name] = array.copy() if name in job.cut.stored else array
    start = job.pieces.starts()[at]
    where = f"in the shard {job.cut.dim} = {start}..{start + job.pieces.sizes[at]}"
    try:
        _launch(kernel, job, arrays)
    except KernelFault as fault:
        told = fault.diagnostic and replace(fault.diagnostic, message=f"{fault.diagnostic.message} ({where})")
        raise KernelFault(f"{fault} ({where})", fault.kind, told, fault.blocks) from None
    except LaunchError as error:
        raise LaunchError(f"{error} ({where})", error.kind, error.diagnostic) from None
    own = job.pieces.own(at)
    found = []
    for name in job.cut.stored:
        array = arrays[name][
            tuple(own if axis == job.cut.axes[name] else slice(None) for axis in range(arrays[name].ndim))
        ]
        array = array.copy() if array.base is not None else array
        found.append(array.view("uint16") if name in job.halves else array)
    return tuple(found)


def _launch(kernel: Kernel, job: Job, arrays: dict[str, Any]) -> None:
    """Run the kernel on arrays of one shard; those on the host go to the worker's GPU and back, where it has one."""
    import numpy as np

    for name, array in arrays.items():
        if not array.flags.c_contiguous:
            arrays[name] = array.copy(order="C")
    bound = kernel.bound((), {**arrays, **job.numbers}, dict(job.options.constants))
    on_host = bound.device == "cpu"
    if on_host and (job.device == "cpu" or (job.device == "auto" and not driver()[0])):
        from phobos.runtime.judge import Judging, judge, prepare

        named = {**arrays, **job.numbers}
        judge(prepare(kernel, bound, (), named, job.options), Judging())
        return
    if not job.options.unchecked:
        kernel.demand_launch(dict(job.options.constants))
    if on_host:
        from phobos.runtime.cuda import host

        result = host.run(kernel, bound, job.options, "cuda:0")
        for name in job.cut.stored:
            arrays[name] = np.asarray(result.arrays[name])
        return
    from phobos.runtime.cuda import launch

    launch.launch(kernel, bound, job.options)
    launch.synchronize(number_of(bound.device))


def demand_alike(workers: list[Worker], device: str) -> str:
    """The runtime that all workers will use, in words. Raises InputError where they would use two."""
    bare = [worker for worker in workers if not worker.gpu]
    if device == "cpu" or len(bare) == len(workers):
        if device == "cuda":
            raise InputError("--device cuda: no worker has a GPU")
        return REFERENCE
    if bare:
        raise InputError(
            f"{len(workers) - len(bare)} workers have a GPU and {len(bare)} have none ({bare[0].address}): results of "
            "two runtimes would be mixed; ask for `--device cpu`, or leave those out"
        )
    return " and ".join(sorted({worker.device for worker in workers}))

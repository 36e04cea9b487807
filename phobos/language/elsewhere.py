"""What other languages call things: CUDA, Triton, Python. Says what to write instead of a name that means nothing here.

Help for a finding and nothing else: no verdict depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_THREADS = "a kernel is written for whole tiles; which thread does what is decided by the compiler"
_TILE = "a tile is declared: `var t: tile<f32>[R, C] = 0.0`"
_PRINT = "kernels cannot print: store into a tensor, and `phobos run` shows it"
_SPANS = "tensors are read and stored by subscripts: `X[i :+ 64]`"
_SIZE = "`extent(X, 0)` is the size of a tensor along axis 0"
_BARRIER = "all blocks of a `@persistent` grid wait for each other at `grid_barrier(BAR)`"
_TOGETHER = "nothing of the kind is needed: a statement is done by the whole block before the next begins"
_ATOMICS = "the atomics are `atomic_add` and `atomic_cas`"
_MODULES = "there are no modules: built-ins are called by their own names"

FUNCTIONS: Mapping[str, str] = {
    "not": "`not` is written `!`",
    "float": "`f32(x)` converts",
    "double": "`f64(x)` converts",
    "half": "`f16(x)` converts",
    "int": "`i32(x)` or `i64(x)` converts",
    "cast": "the type converts: `f32(x)`",
    "astype": "the type converts: `f32(x)`",
    "len": _SIZE,
    "size": _SIZE,
    "shape": _SIZE,
    "numel": _SIZE,
    "abs": "`tmax(x, 0.0 - x)` is the absolute value",
    "fabs": "`tmax(x, 0.0 - x)` is the absolute value",
    "fmax": "`tmax(a, b)` is the greater of two",
    "fmaxf": "`tmax(a, b)` is the greater of two",
    "maximum": "`tmax(a, b)` is the greater of two",
    "fmin": "`tmin(a, b)` is the smaller of two",
    "fminf": "`tmin(a, b)` is the smaller of two",
    "minimum": "`tmin(a, b)` is the smaller of two",
    "mean": "`rowsum(t) / f32(n)` is the mean of each row",
    "rsqrt": "`1.0 / sqrt(x)`",
    "rsqrtf": "`1.0 / sqrt(x)`",
    "select": "`where(condition, a, b)` chooses",
    "arange": "`iota(n)` counts from 0 in a tile of one row",
    "matmul": "`dot(a, b)` is the product of two tiles, `dot_t(a, b)` that with the transpose of `b`",
    "mm": "`dot(a, b)` is the product of two tiles, `dot_t(a, b)` that with the transpose of `b`",
    "cdiv": "`(a + b - 1) / b` rounds a quotient up",
    "ceildiv": "`(a + b - 1) / b` rounds a quotient up",
    "zeros": _TILE,
    "ones": _TILE,
    "full": _TILE,
    "empty": _TILE,
    "zeroslike": _TILE,
    "load": _SPANS,
    "store": _SPANS,
    "print": _PRINT,
    "printf": _PRINT,
    "syncthreads": _TOGETHER,
    "syncwarp": _TOGETHER,
    "debugbarrier": _TOGETHER,
    "threadfence": "`grid_barrier` and the atomics order what blocks see; there is no fence by itself",
    "gridsync": _BARRIER,
    "syncgrid": _BARRIER,
    "atomicadd": "`atomic_add(t, i, v)`",
    "atomiccas": "`atomic_cas(t, i, old, new)`",
    "atomicmax": _ATOMICS,
    "atomicmin": _ATOMICS,
    "atomicsub": _ATOMICS,
    "atomicexch": _ATOMICS,
    "atomicxchg": _ATOMICS,
    "programid": "`ctx.block.x` is the index of the block",
    "numprograms": "`ctx.blocks.x` is the number of blocks",
}
"""By name in small letters and without `_`."""

NAMES: Mapping[str, str] = {
    "blockidx": "`blockIdx.x` is written `ctx.block.x`",
    "griddim": "`gridDim.x` is written `ctx.blocks.x`",
    "threadidx": _THREADS,
    "blockdim": _THREADS,
    "tl": _MODULES,
    "triton": _MODULES,
    "np": _MODULES,
    "numpy": _MODULES,
    "torch": _MODULES,
    "math": _MODULES,
    "none": "every value is a number or a bool",
    "null": "every value is a number or a bool",
    "nullptr": "every value is a number or a bool",
    "pass": "an empty block is `{ }`",
}
"""By name in small letters and without `_`."""

MEMBERS: Mapping[str, str] = {
    "blockidx": "block", "blockid": "block", "programid": "block", "pid": "block", "griddim": "blocks",
    "numblocks": "blocks", "grid": "blocks", "threadidx": "thread", "blockdim": "threads",
}  # fmt: skip
"""What is called so elsewhere is this member of `ctx`."""


def instead_of(name: str, table: Mapping[str, str], near: Iterable[str] = ()) -> str | None:
    """What the table has for a name, however its words are joined; or one of `near` that differs in that alone."""
    plain = _plain(name)
    return table.get(plain) or next((one for one in near if _plain(one) == plain), None)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()

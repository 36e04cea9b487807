"""In how many chains a thread goes along a row that it reduces: in each one instruction waits for the one before it."""

from __future__ import annotations

from phobos.lowering.layout import WARP, Layout
from phobos.semantics.program import Launch

AT_WORK = {"rowmax": 16, "rowsum": 8}  # instructions of a scheduler's warps that fill the time one of them takes
SCHEDULERS = 4  # of a multiprocessor
LEAST = 4  # elements of a chain


def chains_of(kind: str, dtype: str, layout: Layout, launch: Launch) -> int:
    """A power of two; `kind` is that of the reduction, of elements of `dtype`.

    More than one only beside tensor cores, whose registers leave room for few warps to fill the time; and a sum, whose
    bits hang on it, goes by what the kernel's text says of warps. (The largest is the same in any order.)
    """
    if dtype != "f32" or kind not in AT_WORK or not layout.is_fragment:
        return 1
    warps = max(1, launch.threads * (launch.min_blocks or 1) // WARP // SCHEDULERS)
    most = min(AT_WORK[kind] // (warps * layout.row_registers), layout.column_registers // LEAST)
    return 1 << max(most, 1).bit_length() - 1

"""Whether a product can run on tensor cores, and if not, why and what would; and by which of their instructions.

Operands are rounded to f16 (bf16 stays bf16) and accumulated in f32, by every warp in pieces of 16 x 8 x 16
(mma.sync), or on sm_90a by four warps together in pieces of 64 rows, up to 256 columns and 16 of K (wgmma).
"""

from __future__ import annotations

from phobos.lowering import ops
from phobos.lowering.layout import WARP, Layout
from phobos.semantics import ir
from phobos.value import value

ROWS, COLUMNS, DEPTH = 16, 8, 16
RESULTS = ("f32", "f16", "bf16")
GROUP_WARPS, GROUP_ROWS, GROUP_UNIT, GROUP_COLUMNS = 4, 64, 16, 256  # of wgmma; columns come in units, so many at most


@value
class Against:
    """`why` in half a sentence, `what` the product is, `instead` the nearest that would work."""

    why: str
    what: str = ""
    instead: str = ""


NOT_ASKED = Against("no `@tensorcore`")
BESIDE_ANOTHER = Against(
    "another product on the same tile runs on the ordinary units",
    "accumulates in one tile with another",
    "give each product a tile of its own, or shapes that tensor cores take to all",
)


def against(dot: ops.Dot) -> Against | None:
    """Why a product by itself runs on the ordinary units, or None where tensor cores would take it."""
    left, right = dot.left.type, dot.right.type
    assert isinstance(left, ir.TileT) and isinstance(right, ir.TileT)
    rows, depth = left.shape
    columns = right.shape[0] if dot.transposed else right.shape[1]
    for operand in (left, right):
        if operand.dtype not in ("f16", "bf16", "f32"):
            return Against(
                f"its operands are {operand.dtype}",
                f"a product of {left.dtype} and {right.dtype}",
                "use operands of f16, bf16 or f32 (which is rounded to f16)",
            )
    for length, unit, what in ((rows, ROWS, "rows"), (columns, COLUMNS, "columns"), (depth, DEPTH, "depth")):
        if isinstance(length, int) and length % unit:
            near = [
                str(-(-one // step) * step) if isinstance(one, int) else _show(one)
                for one, step in ((rows, ROWS), (columns, COLUMNS), (depth, DEPTH))
            ]
            return Against(
                f"its {what} {'are' if what != 'depth' else 'is'} {length}, no multiple of {unit}",
                f"{_show(rows)} x {_show(columns)} x {_show(depth)} (rows x columns x depth)",
                f"the nearest shape that works is {' x '.join(near)}",
            )
    result = dot.result.type
    if not isinstance(result, ir.TileT) or result.dtype not in RESULTS:
        shown = result.dtype if isinstance(result, ir.TileT) else "no tile"
        return Against(f"its result is {shown}", f"a product into {shown}", f"use a result of {', '.join(RESULTS)}")
    return None


def against_warpgroups(dot: ops.Dot, threads: int, arch: str) -> str:
    """Why no layout lets four warps together compute a product of tensor cores; empty where one may."""
    assert isinstance(dot.result.type, ir.TileT)
    rows, columns = ops.matrix_shape(dot.result.type.shape)
    if arch != "sm_90a":
        return f"{arch} has no instructions for warpgroups"
    if threads % (GROUP_WARPS * WARP):
        return f"{threads} threads are no whole number of warpgroups (128)"
    if rows % GROUP_ROWS:
        return f"its rows are {rows}, no multiple of {GROUP_ROWS}"
    if columns % GROUP_UNIT:
        return f"its columns are {columns}, no multiple of {GROUP_UNIT}"
    return ""


def is_for_warpgroups(layout: Layout) -> bool:
    """Four neighbouring warps hold 64 rows, of as many columns as one instruction takes."""
    return (
        layout.is_fragment
        and layout.warps_down % GROUP_WARPS == 0
        and layout.rows % layout.piece_stride == 0
        and layout.columns_exact
        and layout.warp_columns % GROUP_UNIT == 0
        and layout.warp_columns <= GROUP_COLUMNS
        and layout.warps_used * WARP == layout.threads
    )


NO_SPLIT = "its rows and columns cannot be shared out to the warpgroups in pieces of 64 x 16 to 64 x 256"


def _show(length: object) -> str:
    return str(length) if isinstance(length, int) else "K"

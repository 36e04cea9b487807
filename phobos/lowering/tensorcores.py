"""Whether a product can run on tensor cores, and if not, why and what would.

Operands are rounded to f16 (bf16 stays bf16) and accumulated in f32, in pieces of 16 x 8 x 16.
"""

from __future__ import annotations

from phobos.semantics import ir
from phobos.value import value

ROWS, COLUMNS, DEPTH = 16, 8, 16


@value
class Against:
    """`why` in half a sentence, `what` the product is, `instead` the nearest that would work."""

    why: str
    what: str
    instead: str


def reason_against(product: ir.BuiltinCall) -> Against | None:
    """Why a `dot` or `dot_t` runs on the ordinary units, or None where tensor cores take it."""
    left, right = product.arguments[0].type, product.arguments[1].type
    if (
        not isinstance(left, ir.TileT)
        or not isinstance(right, ir.TileT)
        or len(left.shape) != 2
        or len(right.shape) != 2
    ):
        return None
    rows, depth = left.shape
    columns = right.shape[1] if product.name == "dot" else right.shape[0]
    shown = f"{_show(rows)} x {_show(columns)} x {_show(depth)}"
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
                f"{shown} (rows x columns x depth)",
                f"the nearest shape that works is {' x '.join(near)}",
            )
    return None


def _show(length: object) -> str:
    return str(length) if isinstance(length, int) else "K"

"""How wide an access may be: the largest power of two that divides where it starts, and every row's length.

16-byte accesses need a start, a row pitch and a tile width that are whole numbers of 16 bytes, proved from the
text (loop steps, block tiles, static extents) or promised by `@aligned`; the base address is looked at when the
kernel is launched. A length known only when run does not count: who walks it looks at its end.
"""

from __future__ import annotations

from math import gcd

from phobos.language.scalars import scalar
from phobos.semantics import ir
from phobos.semantics.multiples import WIDE_BYTES
from phobos.semantics.poly import Poly
from phobos.semantics.values import Values


def elements_per_access(access: ir.Access, values: Values) -> int:
    """How many elements of a row one instruction may move, at most: 1, or a power of two."""
    last = access.subs[-1]
    if not isinstance(last, ir.SliceSub) or not isinstance(access.base, ir.Tensor):
        return 1
    most = WIDE_BYTES // scalar(access.base.dtype).bytes
    steps = gcd(values.divisor(values.poly(last.first)), last.static or 0)
    stride = Poly.of(1)
    for axis in range(len(access.subs) - 1, 0, -1):
        stride = stride * extent_poly(access.base.extents[axis])
        row = access.subs[axis - 1]
        start = row.index if isinstance(row, ir.PointSub) else row.first
        single = isinstance(row, ir.PointSub) or row.static == 1
        steps = gcd(steps, values.divisor(stride * values.poly(start) if single else stride))
    width = 1
    while width < most and steps % (width * 2) == 0:
        width *= 2
    return width


def extent_poly(extent: int | ir.Dim | ir.Constant) -> Poly:
    if isinstance(extent, int):
        return Poly.of(extent)
    if isinstance(extent, ir.Constant):
        return Poly.of(extent.value)
    return Poly.atom("dim", extent.name)

"""How far two right answers may lie apart: by element type, by the functions a kernel calls, by the length of its sums.

The figures and where they come from:
- a rounding is half a unit in the last place of the type (IEEE 754): u = 2^-11 f16, 2^-8 bf16, 2^-24 f32, 2^-53 f64;
- elementwise code differs by fused multiply-adds and by division: a few ulps a statement, `ELEMENTWISE` in all;
- a sum of n terms in another order: sqrt(n) u with high probability, n u at worst (Higham and Mary, "A New Approach
  to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41, 2019), times 4 so that a right kernel is never
  blamed;
- GPU approximations (PTX ISA, "Floating Point Instructions"; CUDA C++ Programming Guide, "Intrinsic Functions"):
  `ex2.approx` and `lg2.approx` 2^-22 relative, `sqrt.approx` 2^-23, `tanh.approx` 2^-11; through `__expf` the error of
  `exp` grows with its argument, 2 + 1.173 |x| ulps, taken at |x| = 88, the range of f32;
- `@tensorcore` rounds operands of a product to f16: 2^-11 for each of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from phobos.semantics import ir
from phobos.semantics.walking import everything_in, statements_of
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.binding import Bound

UNIT = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
ELEMENTWISE = 16  # half ulps
SUM_FACTOR = 4.0
APPROXIMATE = {"exp": 105 * 2.0**-24, "log": 2.0**-21, "sqrt": 2.0**-22, "tanh": 2.0**-10, "pow": 105 * 2.0**-24}
_SUMS = ("dot", "dot_t", "rowsum", "cumsum")


@value
class Tolerance:
    """A cell may differ by `relative` of its own size plus `of_largest` of the largest cell of its tensor."""

    relative: float
    of_largest: float
    why: str


def tolerance_of(bound: Bound, tensor: str, *, on_gpu: bool) -> Tolerance:
    """How far the cells of a tensor may lie from another right run of the same kernel."""
    program = bound.program
    dtype = program.tensors[tensor].dtype
    if dtype not in UNIT:
        return Tolerance(0.0, 0.0, f"{dtype} is exact")
    computed = {dtype}
    called: set[str] = set()
    for statement in statements_of(program.body):
        for part in everything_in(statement):
            if isinstance(part.type, (ir.ScalarT, ir.TileT)):
                if part.type.dtype in UNIT:
                    computed.add(part.type.dtype)
                if isinstance(part, ir.BuiltinCall):
                    called.add(part.name)
    coarsest = max(computed, key=lambda name: UNIT[name])
    relative = ELEMENTWISE * UNIT[coarsest]
    why = [f"{ELEMENTWISE} half ulps of {coarsest}"]
    if on_gpu:
        for name in sorted(called & set(APPROXIMATE)):
            relative += APPROXIMATE[name]
            why.append(f"the approximate {name}")
    largest = 0.0
    if called & set(_SUMS) or _accumulates(bound):
        length = max([1, *bound.dims.values()])
        unit = UNIT["f64"] if dtype == "f64" and "f32" not in computed else UNIT["f32"]
        largest = SUM_FACTOR * float(np.sqrt(length)) * unit
        why.append(f"sums of up to {length} terms in another order")
        if on_gpu and "tensorcore" in program.flags and called & {"dot", "dot_t"}:
            largest += 2 * UNIT["f16"]
            why.append("operands rounded to f16 on tensor cores")
    return Tolerance(relative, largest, ", ".join(why))


def _accumulates(bound: Bound) -> bool:
    return any(isinstance(s, ir.Assign) and s.op in ("+", "-") for s in statements_of(bound.program.body))


@value
class Difference:
    """The first cell that lies too far off, and the largest distance of all, which is NaN where no two are numbers."""

    index: tuple[int, ...]
    got: float
    wanted: float
    cells: int  # how many lie too far off
    largest: float


def compare(got: Any, wanted: Any, tolerance: Tolerance) -> Difference | None:
    """None where all cells agree: NaN with NaN, infinity with the same infinity."""
    if got.dtype.kind in "iub":
        off = got != wanted
        gap = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
    else:
        a, b = got.astype(np.float64), wanted.astype(np.float64)
        with np.errstate(invalid="ignore"):
            gap = np.abs(a - b)
        finite = np.isfinite(b)
        scale = float(np.abs(b[finite]).max()) if finite.any() else 0.0
        with np.errstate(invalid="ignore"):
            near = gap <= tolerance.relative * np.abs(b) + tolerance.of_largest * scale
        off = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not off.any():
        return None
    index = tuple(int(i) for i in np.argwhere(off)[0])
    gaps = gap[off & ~np.isnan(gap)]
    largest = float(gaps.max()) if gaps.size else float("nan")
    return Difference(index, float(got[index]), float(wanted[index]), int(off.sum()), largest)

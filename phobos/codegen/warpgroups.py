"""The instructions of warpgroups, as device functions: one for each number of columns and form of operands.

A warpgroup multiplies 64 rows by N columns, 16 of K at a time. Each operand in shared memory is named by a
descriptor: where it begins, how far apart its groups of eight rows and its panels lie, and how rows are swizzled.
"""

from __future__ import annotations

import re

from phobos.lowering.panels import Panels

_NAME = re.compile(r"\bph_multiply_(f16|bf16)_64x(\d+)(_held)?(_turned)?\b")
_SWIZZLES = {128: 1, 64: 2, 32: 3}  # of rows of so many bytes


def name_of(dtype: str, columns: int, held: bool, turned: bool) -> str:
    """`held`: the left operand is in registers. `turned`: the right one has its columns along its rows."""
    return f"ph_multiply_{dtype}_64x{columns}{'_held' if held else ''}{'_turned' if turned else ''}"


def descriptor(panels: Panels, pointer: str) -> str:
    """The call that describes an operand whose first row and column lie at `pointer`."""
    return f"ph_descriptor<{_SWIZZLES[panels.row_bytes]}>({pointer}, {panels.panel_bytes}, {8 * panels.row_bytes})"


def pieces_for(text: str) -> str:
    """The functions that `text` calls."""
    return "\n".join(function(*found) for found in sorted(set(_NAME.findall(text))))


def function(dtype: str, columns: str, held: str, turned: str) -> str:
    """Sums of two rows of each thread, in two arrays, += a 64 x 16 piece times a 16 x N one."""
    count = int(columns) // 2
    sums = ", ".join(f"%{n}" for n in range(count))
    outputs = ", ".join(
        f'"+f"({array}[{pair * 2 + one}])'
        for pair in range(count // 4)
        for array in ("upper", "lower")
        for one in (0, 1)
    )
    name = name_of(dtype, int(columns), bool(held), bool(turned))
    if held:
        parameter = "const unsigned (&a)[4]"
        left = "{" + ", ".join(f"%{count + n}" for n in range(4)) + "}"
        inputs, right, scales = '"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])', f"%{count + 4}", "1, 1, 1"
    else:
        parameter, left, inputs, right, scales = (
            "const unsigned long long a", f"%{count}", '"l"(a)', f"%{count + 1}", "1, 1, 1, 0"
        )  # fmt: skip
    return f"""\
__device__ __forceinline__ void {name}(float* upper, float* lower, {parameter}, const unsigned long long b) {{
  asm volatile("wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{dtype}.{dtype} "
      "{{{sums}}}, "
      "{left}, {right}, {scales}, {int(bool(turned))};"
      : {outputs}
      : {inputs}, "l"(b));
}}
"""

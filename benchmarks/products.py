"""The product of two matrices that several benchmarks run, with attributes, element type and tiles of their own."""

from __future__ import annotations

TEXT = """
{attributes}@autotune(BM in {rows}, BN in {columns}, BK in {deep})
kernel gemm(A: tensor<{dtype}>[M, K], B: tensor<{dtype}>[K, N], C: tensor<{dtype}>[M, N]) {{
  let row = ctx.block.x * BM
  let column = ctx.block.y * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {{
    acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
  }}
  C[row :+ BM, column :+ BN] = acc
}}
"""


def product(
    *attributes: str, dtype: str = "f32", rows: tuple[int, ...] = (128,), columns: tuple[int, ...] = (128,),
    deep: tuple[int, ...],
) -> str:  # fmt: skip
    """C = A B; the choices of the tile's extents, of which the first is the default."""
    lines = "".join(f"{attribute}\n" for attribute in attributes)
    return TEXT.format(attributes=lines, dtype=dtype, rows=list(rows), columns=list(columns), deep=list(deep))

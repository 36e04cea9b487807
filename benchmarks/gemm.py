"""Products against cuBLAS: f32 on the ordinary units, f16 on tensor cores, in one run.
Usage: python benchmarks/gemm.py [--json FILE]"""

from __future__ import annotations

import cupy
import numpy
from gpu_common import finish, micros, table

from phobos.runtime.kernel import Kernel, kernel

TEXT = """
{attribute}
@launch(256)
@autotune(BM in [128], BN in [128], BK in [{depth}])
kernel gemm(A: tensor<{dtype}>[M, K], B: tensor<{dtype}>[K, N], C: tensor<{dtype}>[M, N]) {{
  let row = ctx.block.y * BM
  let column = ctx.block.x * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {{
    acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
  }}
  C[row :+ BM, column :+ BN] = acc
}}
"""


def tuned(made: Kernel, a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray, choices: list[dict[str, int]]) -> float:
    want = a[:256].astype(numpy.float32) @ b.astype(numpy.float32)
    times = []
    for constants in choices:
        c.fill(0)
        made(a, b, c, constants=constants)
        error = float(cupy.abs(c[:256].astype(numpy.float32) - want).max() / cupy.abs(want).max())
        assert error < 3e-3, f"wrong at {constants}: {error}"
        times.append(micros(lambda k=constants: made(a, b, c, constants=k), repeat=8, warm=2))
        print(constants, f"{2 * a.shape[0] ** 3 / times[-1] / 1e6:.1f} TFLOP/s", flush=True)
    return min(times)


def main() -> None:
    rows: list[list[object]] = []
    figures: dict[str, float] = {}
    f32 = [{"BM": m, "BN": n, "BK": k} for m, n, k in ((128, 128, 16), (128, 64, 16), (64, 64, 16))]
    f16 = [{"BM": m, "BN": n, "BK": k} for m, n, k in ((128, 128, 32), (128, 256, 32), (128, 128, 64))]
    cases = [("f32", "", 16, 4096, f32), ("f16", "@tensorcore", 32, 4096, f16), ("f16", "@tensorcore", 32, 8192, f16)]
    for dtype, attribute, depth, n, choices in cases:
        kind = numpy.float16 if dtype == "f16" else numpy.float32
        a = (cupy.random.rand(n, n, dtype=numpy.float32) - 0.5).astype(kind)
        b = (cupy.random.rand(n, n, dtype=numpy.float32) - 0.5).astype(kind)
        c = cupy.zeros((n, n), kind)
        made = kernel(TEXT.format(attribute=attribute, dtype=dtype, depth=depth))
        ours = tuned(made, a, b, c, choices)
        # CuPy does not call cuBLAS in a capture; ten calls in a row hide the time of the host.
        library = micros(lambda a=a, b=b, c=c: cupy.matmul(a, b, out=c), repeat=8, warm=2, inner=10, captured=False)
        work = 2 * n**3 / 1e6
        rows.append([f"{dtype} {n}^3", work / ours, work / library, library / ours])
        figures[f"{dtype} {n}"] = work / ours
    head = ["", "ours, TFLOP/s", "cuBLAS, TFLOP/s", "ratio"]
    finish("Products", [table("C = A B", head, rows)], {"tflops": figures})


if __name__ == "__main__":
    main()

"""Products against cuBLAS: f32 on the ordinary units, f16 on tensor cores, in one run.
Usage: python benchmarks/gemm.py [f32] [f16] [--json FILE]"""

from __future__ import annotations

import sys

import cupy
import numpy
from gpu_common import finish, micros, table

from phobos.runtime.kernel import Kernel, kernel

TEXT = """
{attribute}
@launch({threads})
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


# Attributes, threads and tile; the wide tiles want more than 48 KB of buffers.
F32: list[tuple[str, int, dict[str, int]]] = [
    ("", 256, {"BM": 128, "BN": 128, "BK": 16}),
    ("@dynshared", 256, {"BM": 128, "BN": 128, "BK": 16}),
    ("@dynshared\n@pipeline", 256, {"BM": 128, "BN": 128, "BK": 32}),
    ("@dynshared", 256, {"BM": 128, "BN": 256, "BK": 16}),
    ("@dynshared", 256, {"BM": 256, "BN": 128, "BK": 16}),
    ("@dynshared", 128, {"BM": 128, "BN": 128, "BK": 16}),
]


def tuned(made: Kernel, a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray, choices: list[dict[str, int]]) -> float:
    want = a[:256].astype(numpy.float32) @ b.astype(numpy.float32)
    times = []
    for constants in choices:
        c.fill(numpy.nan)
        made(a, b, c, constants=constants)
        error = float(cupy.abs(c[:256].astype(numpy.float32) - want).max() / cupy.abs(want).max())
        assert error < (1e-5 if a.dtype == numpy.float32 else 3e-3), f"wrong at {constants}: {error}"
        times.append(micros(lambda k=constants: made(a, b, c, constants=k), repeat=8, warm=2))
        print(
            made.text.split("@autotune")[0].split(),
            constants,
            f"{2 * a.shape[0] ** 3 / times[-1] / 1e6:.1f} TFLOP/s",
            flush=True,
        )
    return min(times)


def matrices(n: int, kind: type) -> tuple[cupy.ndarray, cupy.ndarray, cupy.ndarray]:
    a, b = ((cupy.random.rand(n, n, dtype=numpy.float32) - 0.5).astype(kind) for _ in range(2))
    return a, b, cupy.zeros((n, n), kind)


def compared(
    name: str, a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray, ours: float, rows: list[list[object]],
    figures: dict[str, float],
) -> None:  # fmt: skip
    """A row for the table: CuPy calls cuBLAS, not in a capture; ten calls in a row hide the time of the host."""
    library = micros(lambda: cupy.matmul(a, b, out=c), repeat=8, warm=2, inner=10, captured=False)
    work = 2 * a.shape[0] ** 3 / 1e6
    rows.append([name, work / ours, work / library, library / ours])
    figures[name] = work / ours


def main() -> None:
    rows: list[list[object]] = []
    figures: dict[str, float] = {}
    f16 = [{"BM": m, "BN": n, "BK": k} for m, n, k in ((128, 128, 32), (128, 256, 32), (128, 128, 64))]
    wanted = [kind for kind in ("f32", "f16") if kind in sys.argv] or ["f32", "f16"]
    for n in (4096, 8192) if "f32" in wanted else ():
        a, b, c = matrices(n, numpy.float32)
        ours = min(
            tuned(kernel(TEXT.format(attribute=attribute, dtype="f32", depth=16, threads=threads)), a, b, c, [tile])
            for attribute, threads, tile in F32
        )
        compared(f"f32 {n}^3", a, b, c, ours, rows, figures)
    cases = [("f16", "@tensorcore", 32, 4096, f16), ("f16", "@tensorcore", 32, 8192, f16)]
    for dtype, attribute, depth, n, choices in cases if "f16" in wanted else ():
        a, b, c = matrices(n, numpy.float16)
        made = kernel(TEXT.format(attribute=attribute, dtype=dtype, depth=depth, threads=256))
        compared(f"{dtype} {n}^3", a, b, c, tuned(made, a, b, c, choices), rows, figures)
    head = ["", "ours, TFLOP/s", "cuBLAS, TFLOP/s", "ratio"]
    finish("Products", [table("C = A B", head, rows)], {"tflops": figures})


if __name__ == "__main__":
    main()

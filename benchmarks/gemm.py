"""Products against cuBLAS: f32 on the ordinary units, f16 on tensor cores (and Triton's tutorial kernel), in one run.
Usage: python benchmarks/gemm.py [f32] [f16] [--json FILE]"""

from __future__ import annotations

import sys
from pathlib import Path

import cupy
import numpy
from figures import Figure
from gpu_common import finish, micros, table, torch_micros

from phobos.runtime.kernel import Kernel, kernel

TEXT = """
{attribute}
@launch({threads})
@autotune(BM in [128], BN in [128], BK in [16])
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {{
  let row = ctx.block.y * BM
  let column = ctx.block.x * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {{
    acc += dot(A[row :+ BM, k :+ BK], B[k :+ BK, column :+ BN])
  }}
  C[row :+ BM, column :+ BN] = acc
}}
"""
TENSOR_CORES = (Path(__file__).parent / "kernels" / "gemm.ph").read_text()


# Attributes, threads and tile; the wide tiles want more than 48 KB of buffers.
F32: list[tuple[str, int, dict[str, int]]] = [
    ("", 256, {"BM": 128, "BN": 128, "BK": 16}),
    ("@dynshared", 256, {"BM": 128, "BN": 128, "BK": 16}),
    ("@dynshared\n@pipeline", 256, {"BM": 128, "BN": 128, "BK": 32}),
    ("@dynshared", 256, {"BM": 128, "BN": 256, "BK": 16}),
    ("@dynshared", 256, {"BM": 256, "BN": 128, "BK": 16}),
    ("@dynshared", 128, {"BM": 128, "BN": 128, "BK": 16}),
]


# `@launch` and tile.
F16: list[tuple[str, dict[str, int]]] = [
    ("@launch(256)", {"BM": 128, "BN": 256, "BK": 64}),
    ("@launch(256)", {"BM": 256, "BN": 128, "BK": 64}),
    ("@launch(256)", {"BM": 128, "BN": 192, "BK": 64}),
    ("@launch(256, 2)", {"BM": 128, "BN": 128, "BK": 64}),
    ("@launch(128, 2)", {"BM": 128, "BN": 128, "BK": 64}),
]


def tuned(made: Kernel, a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray, choices: list[dict[str, int]]) -> float:
    want = a[:256].astype(numpy.float32) @ b.astype(numpy.float32)
    times = []
    for constants in choices:
        c.fill(numpy.nan)
        made(a, b, c, constants=constants)
        error = float(cupy.abs(c[:256].astype(numpy.float32) - want).max() / cupy.abs(want).max())
        assert error < (1e-5 if a.dtype == numpy.float32 else 3e-3), f"wrong at {constants}: {error}"
        times.append(micros(lambda k=constants: made(a, b, c, constants=k), repeat=8, warm=2, inner=5))
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


def tutorial(a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray) -> float:
    """Microseconds of Triton's tutorial kernel, tuned."""
    import torch
    from opponents import triton_gemm

    given = [torch.from_dlpack(one) for one in (a, b, c)]
    triton_gemm.product(*given)
    taken = torch_micros(lambda: triton_gemm.product(*given))
    print(triton_gemm.chosen(), flush=True)
    return taken


def compared(
    name: str, a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray, ours: float, rows: list[list[object]],
    figures: list[Figure], floor: float, other: float | None = None,
) -> None:  # fmt: skip
    """A row for the table: CuPy calls cuBLAS, not in a capture; ten calls in a row hide the time of the host."""
    library = micros(lambda: cupy.matmul(a, b, out=c), repeat=8, warm=2, inner=10, captured=False)
    work = 2 * a.shape[0] ** 3 / 1e6
    beside: list[object] = ["", ""] if other is None else [work / other, other / ours]
    rows.append([name, work / ours, work / library, library / ours, *beside])
    figures.append(Figure(name, work / ours, "TFLOP/s", library / ours, "cuBLAS", floor, at_most=False))
    if other is not None:
        of = "Triton's, tuned"
        figures.append(Figure(f"{name}, beside Triton", work / ours, "TFLOP/s", other / ours, of, 0.95, at_most=False))


def main() -> None:
    rows: list[list[object]] = []
    figures: list[Figure] = []
    wanted = [kind for kind in ("f32", "f16") if kind in sys.argv] or ["f32", "f16"]
    for n in (4096, 8192) if "f32" in wanted else ():
        a, b, c = matrices(n, numpy.float32)
        ours = min(
            tuned(kernel(TEXT.format(attribute=attribute, threads=threads)), a, b, c, [tile])
            for attribute, threads, tile in F32
        )
        compared(f"f32 {n}^3", a, b, c, ours, rows, figures, 0.9)
    for n in (4096, 8192) if "f16" in wanted else ():
        a, b, c = matrices(n, numpy.float16)
        ours = min(
            tuned(kernel(TENSOR_CORES.replace("@launch(256)", threads)), a, b, c, [tile]) for threads, tile in F16
        )
        compared(f"f16 {n}^3", a, b, c, ours, rows, figures, 0.75, tutorial(a, b, c))
    head = ["", "ours, TFLOP/s", "cuBLAS", "ratio", "Triton's tutorial, tuned", "ratio"]
    finish("Products", [table("C = A B", head, rows)], {}, figures)


if __name__ == "__main__":
    main()

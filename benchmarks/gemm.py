"""Products against cuBLAS and Triton's tutorial kernel: f32 on the ordinary units, f16 on tensor cores, in one run.
Ours and Triton's are each tuned over their own space; `forms` are other forms of the f32 kernel, at one tile.
Usage: python benchmarks/gemm.py [f32] [f16] [forms] [--json FILE]"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cupy
import numpy
from figures import Figure
from gpu_common import finish, micros, table, torch_micros

from phobos import load
from phobos.errors import PhobosError
from phobos.runtime.kernel import Kernel, kernel

KERNELS = Path(__file__).parent / "kernels"
Choice = tuple[str, int, int, int]  # attributes in place of `@launch(256)`, and a tile

F32: list[Choice] = [
    ("@launch(256)", 128, 256, 16), ("@launch(256)", 128, 256, 8), ("@launch(256)", 256, 128, 16),
    ("@launch(256, 2)", 128, 128, 16), ("@launch(128, 2)", 128, 128, 16), ("@launch(128, 2)", 128, 128, 8),
]  # fmt: skip
F16: list[Choice] = [
    ("@launch(256)", 128, 256, 64), ("@launch(256)", 256, 128, 64), ("@launch(256)", 128, 192, 64),
    ("@launch(256, 2)", 128, 128, 64), ("@launch(128, 2)", 128, 128, 64),
]  # fmt: skip
Extents = tuple[int, int, int]  # M, N, K
CUBES: tuple[Extents, ...] = ((4096, 4096, 4096), (8192, 8192, 8192))
OTHERS: tuple[Extents, ...] = (  # halves whose rows are multiples of 16 bytes, of 8 and of 2; two that are small
    (4000, 4200, 4104), (8192, 50264, 1024), (4004, 4004, 4004), (4095, 4097, 4093), (1000, 1000, 1000),
)  # fmt: skip
BANDS = (1, 8, 16)  # of blocks along x that run together, for the L2 cache; tried on the best tile
FLOORS = {"f32": 0.9, "f16": 0.75}  # of cuBLAS
BESIDE_TRITON = 0.95


class Ours:
    """The best choice for one product: its microseconds, and its name. Each is checked before it is timed."""

    def __init__(self, kind: str, a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray) -> None:
        self.arrays = a, b, c
        some = slice(a.shape[0] - 256, None)  # rows of the last blocks
        self.want = a[some].astype(numpy.float32) @ b.astype(numpy.float32), some
        self.most = 1e-5 if kind == "f32" else 3e-3
        self.us, self.how = float("inf"), ""
        text = (KERNELS / ("gemm_f32.ph" if kind == "f32" else "gemm.ph")).read_text()
        best: tuple[Kernel, dict[str, int], str] | None = None
        for launch, rows, columns, step in F32 if kind == "f32" else F16:
            made, tile = kernel(text.replace("@launch(256)", launch)), {"BM": rows, "BN": columns, "BK": step}
            if self._timed(made, tile, 1, f"{launch}, {rows} x {columns} x {step}"):
                best = made, tile, self.how
        assert best is not None, "no choice runs"
        for band in BANDS[1:]:
            self._timed(best[0], best[1], band, f"{best[2]}, bands of {band}")

    def _timed(self, made: Kernel, tile: dict[str, int], band: int, name: str) -> bool:
        a, b, c = self.arrays
        schedule: dict[str, Any] = {} if band == 1 else {"schedule": "flat", "l2_group": band}

        def launch() -> None:
            made(a, b, c, constants=tile, **schedule)

        c.fill(numpy.nan)
        try:
            launch()
        except PhobosError as refused:  # a choice that does not fit is no choice
            print(f"{name}: {refused}", flush=True)
            return False
        want, some = self.want
        error = float(cupy.abs(c[some].astype(numpy.float32) - want).max() / cupy.abs(want).max())
        assert error < self.most, f"wrong by {error}: {name}"
        taken = micros(launch, repeat=8, warm=2, inner=5)
        print(f"{name}: {taken:.1f} us, error {error:.1e}", flush=True)
        if taken >= self.us:
            return False
        self.us, self.how = taken, name
        return True


def matrices(extents: Extents, kind: str) -> tuple[cupy.ndarray, cupy.ndarray, cupy.ndarray]:
    m, n, k = extents
    dtype = numpy.float32 if kind == "f32" else numpy.float16
    a, b = ((cupy.random.rand(*shape, dtype=numpy.float32) - 0.5).astype(dtype) for shape in ((m, k), (k, n)))
    return a, b, cupy.zeros((m, n), dtype)


def tutorial(a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray) -> float | None:
    """Microseconds of Triton's tutorial kernel, tuned; None without Triton."""
    try:
        import torch
        from opponents import triton_gemm
    except ImportError:
        return None
    given = [torch.from_dlpack(one) for one in (a, b, c)]
    c.fill(numpy.nan)
    triton_gemm.product(*given)
    want = given[0][:256].float() @ given[1].float()
    assert float((given[2][:256].float() - want).abs().max() / want.abs().max()) < 3e-3, "Triton's product is wrong"
    taken = torch_micros(lambda: triton_gemm.product(*given))
    print(triton_gemm.chosen(), flush=True)
    return taken


def measured(kind: str, extents: Extents) -> tuple[list[object], list[Figure]]:
    """A row of the table, and its figures, which have targets for `CUBES`. CuPy calls cuBLAS, not in a capture: ten
    calls hide the host's time."""
    a, b, c = matrices(extents, kind)
    is_cube = extents in CUBES
    ours = Ours(kind, a, b, c)
    library = micros(lambda: cupy.matmul(a, b, out=c), repeat=8, warm=2, inner=10, captured=False)
    other = tutorial(a, b, c)
    work = 2 * math.prod(extents) / 1e6
    name = f"{kind} {extents[0]}^3" if is_cube else f"{kind} {' x '.join(map(str, extents))}"
    row: list[object] = [name, work / ours.us, work / library, library / ours.us]
    rate = work / ours.us
    floor, beside = (FLOORS[kind], BESIDE_TRITON) if is_cube else (None, None)
    figures = [Figure(name, rate, "TFLOP/s", library / ours.us, "cuBLAS", floor, at_most=False)]
    if other is not None:
        of = "Triton's, tuned"
        figures.append(Figure(f"{name}, beside Triton", rate, "TFLOP/s", other / ours.us, of, beside, False))
    row += ["", ""] if other is None else [work / other, other / ours.us]
    return [*row, ours.how], figures


def forms() -> Iterator[tuple[list[object], Figure]]:
    """The same product written in other ways, and of extents that nothing divides."""
    module = load(KERNELS / "gemm_forms.ph")
    plain = load(KERNELS / "gemm_f32.ph").gemm
    for name, made, (m, n, k), more in (
        ("dot_t", module.turned, (4096, 4096, 4096), ()),
        ("alpha A B + beta C", module.scaled, (4096, 4096, 4096), (1.5, 0.5)),
        ("named views", module.views, (4096, 4096, 4096), ()),
        ("4095 x 4097 x 4093", plain, (4095, 4097, 4093), ()),
        ("the same, dot_t", module.turned, (4095, 4097, 4093), ()),
    ):
        a, b = (cupy.random.rand(*shape, dtype=numpy.float32) - 0.5 for shape in ((m, k), (k, n)))
        given, c = (cupy.ascontiguousarray(b.T) if "dot_t" in name else b), cupy.ones((m, n), numpy.float32)
        want = a[-256:] @ b
        made(a, given, c, *more)
        if more:
            want = want * more[0] + more[1]
        error = float(cupy.abs(c[-256:] - want).max() / cupy.abs(want).max())
        assert error < 1e-5, f"wrong by {error}: {name}"
        ours = micros(lambda made=made, g=(a, given, c, *more): made(*g), repeat=8, warm=2, inner=5)
        right = given.T if "dot_t" in name else b
        library = micros(lambda a=a, r=right, c=c: cupy.matmul(a, r, out=c), repeat=8, warm=2, inner=10, captured=False)
        work = 2 * m * n * k / 1e6
        figure = Figure(f"f32, {name}", work / ours, "TFLOP/s", library / ours, "cuBLAS")
        yield [name, work / ours, work / library, library / ours, "", "", "128 x 256 x 16"], figure


def main() -> None:
    rows: list[list[object]] = []
    figures: list[Figure] = []
    kinds = [kind for kind in ("f32", "f16", "forms") if kind in sys.argv] or ["f32", "f16", "forms"]
    if "forms" in kinds:
        for row, one in forms():
            rows.append(row)
            figures.append(one)
    every = [(kind, extents) for kind in kinds if kind != "forms" for extents in CUBES]
    for kind, extents in every + [("f16", extents) for extents in OTHERS if "f16" in kinds]:
        row, some = measured(kind, extents)
        rows.append(row)
        figures += some
    head = ["", "ours, TFLOP/s", "cuBLAS", "ratio", "Triton, tuned", "ratio", "ours by"]
    finish("Products", [table("C = A B", head, rows)], {}, figures)


if __name__ == "__main__":
    main()

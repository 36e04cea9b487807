"""Attention in f16 with f32 sums, widths 64 and 128: ours, PyTorch's and Triton's, in one run.
Usage: python benchmarks/attention.py [--json FILE]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from figures import Figure
from gpu_common import finish, table, torch_micros
from opponents import triton_attention
from torch.nn.functional import scaled_dot_product_attention

from phobos.errors import PhobosError
from phobos.runtime.kernel import kernel

HEADS, LENGTH = 8, 4096
TEXT = (Path(__file__).parent / "kernels" / "attention.ph").read_text()
CHOICES = [
    ("@launch(256)", 128, 128), ("@launch(256)", 128, 64), ("@launch(256, 2)", 128, 64), ("@launch(128, 2)", 64, 64),
    ("@launch(128, 3)", 64, 64), ("@launch(128, 2)", 64, 128), ("@launch(256, 2)", 128, 128),
]  # fmt: skip


def error_of(out: torch.Tensor, want: torch.Tensor) -> float:
    return float((out.double() - want).norm() / want.norm())


def ours(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, want: torch.Tensor, scale: float) -> tuple[float, str]:
    """Microseconds of the best choice, and which it is; every one is checked first."""
    heads, length, width = q.shape
    flat = [x.view(heads * length, width) for x in (q, k, v)]
    best, how = float("inf"), ""
    for threads, rows, columns in CHOICES:
        out = torch.full_like(flat[0], float("nan"))
        made = kernel(TEXT.replace("@launch(256)", threads))
        given = {"D": width, "BM": rows, "BN": columns}
        named = f"{threads}, {rows} x {columns}"

        def launch(made: Any = made, given: dict[str, int] = given, out: torch.Tensor = out) -> None:
            made(*flat, out, length, scale, constants=given)

        try:
            launch()
        except PhobosError as refused:  # a choice that does not fit is no choice
            print(f"width {width}, {named}: {refused}", flush=True)
            continue
        error = error_of(out.view_as(want), want)
        assert error < 2e-3, f"wrong by {error}: {named}"
        taken = torch_micros(launch)
        work = 4 * heads * length * length * width / 1e6
        print(f"width {width}, {named}: {work / taken:.0f} TFLOP/s, error {error:.1e}", flush=True)
        if taken < best:
            best, how = taken, named
    return best, how


def measured(width: int) -> tuple[list[object], list[Figure]]:
    scale = width**-0.5
    q, k, v = (torch.randn(HEADS, LENGTH, width, device="cuda", dtype=torch.float16) for _ in range(3))
    want = torch.softmax(q.double() @ k.double().transpose(1, 2) * scale, -1) @ v.double()
    best, how = ours(q, k, v, want, scale)
    library = torch_micros(lambda: scaled_dot_product_attention(q[None], k[None], v[None], scale=scale))
    out = torch.full_like(q, float("nan"))
    triton_attention.attention(q, k, v, out, scale)
    assert error_of(out, want) < 2e-3
    other = torch_micros(lambda: triton_attention.attention(q, k, v, out, scale))
    print(triton_attention.chosen(), flush=True)
    work = 4 * HEADS * LENGTH * LENGTH * width / 1e6
    row: list[object] = [width, work / best, work / library, library / best, work / other, other / best, how]
    rate = work / best
    return row, [
        Figure(f"width {width}", rate, "TFLOP/s", library / best, "PyTorch", 0.55, at_most=False),
        Figure(f"width {width}, beside Triton", rate, "TFLOP/s", other / best, "Triton's, tuned", 0.95, at_most=False),
    ]


def main() -> None:
    rows: list[list[object]] = []
    figures: list[Figure] = []
    for width in (64, 128):
        row, found = measured(width)
        rows.append(row)
        figures += found
    head = ["width", "ours, TFLOP/s", "PyTorch", "ratio", "Triton's tutorial, tuned", "ratio", "ours by"]
    finish("Attention", [table(f"{HEADS} heads of {LENGTH}, f16, no mask", head, rows)], {}, figures)


if __name__ == "__main__":
    main()

"""Attention in f16 with f32 sums, widths 64 and 128: ours, PyTorch's and Triton's, in turns.
Usage: python benchmarks/attention.py [--json FILE]"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from figures import Figure
from gpu_common import finish, in_turns, ratio, table
from opponents import triton_attention
from torch.nn.functional import scaled_dot_product_attention

from phobos.errors import PhobosError
from phobos.runtime.kernel import kernel

HEADS, LENGTH = 8, 4096
TEXT = (Path(__file__).parent / "kernels" / "attention.ph").read_text()
CHOICES = [
    ("@launch(256)", 128, 128), ("@launch(256)", 128, 64), ("@launch(256, 2)", 128, 64), ("@launch(128, 2)", 64, 64),
    ("@launch(128, 3)", 64, 64), ("@launch(128, 2)", 64, 128), ("@launch(256, 2)", 128, 128),
    ("@launch(512)", 256, 128), ("@launch(512)", 256, 64),
]  # fmt: skip


def error_of(out: torch.Tensor, want: torch.Tensor) -> float:
    return float((out.double() - want).norm() / want.norm())


def launches(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, want: torch.Tensor, scale: float
) -> dict[str, Callable[[], None]]:
    """Every choice that fits, by what it is called; each is checked first."""
    heads, length, width = q.shape
    flat = [x.view(heads * length, width) for x in (q, k, v)]
    found: dict[str, Callable[[], None]] = {}
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
        found[named] = launch
    return found


def measured(width: int) -> tuple[list[object], list[Figure]]:
    scale = width**-0.5
    q, k, v = (torch.randn(HEADS, LENGTH, width, device="cuda", dtype=torch.float16) for _ in range(3))
    want = torch.softmax(q.double() @ k.double().transpose(1, 2) * scale, -1) @ v.double()
    choices = launches(q, k, v, want, scale)
    out = torch.full_like(q, float("nan"))
    triton_attention.attention(q, k, v, out, scale)
    assert error_of(out, want) < 2e-3
    print(triton_attention.chosen(), flush=True)
    others: dict[str, Callable[[], Any]] = {
        "PyTorch": lambda: scaled_dot_product_attention(q[None], k[None], v[None], scale=scale),
        "Triton's, tuned": lambda: triton_attention.attention(q, k, v, out, scale),
    }
    took = in_turns({**choices, **others})
    rate = {name: 4 * HEADS * LENGTH * LENGTH * width / 1e6 / statistics.median(times) for name, times in took.items()}
    for name, times in took.items():
        spread = f"{min(times):.1f} to {max(times):.1f} us"
        print(f"width {width}, {name}: {rate[name]:.0f} TFLOP/s, {spread}", flush=True)
    how = max(choices, key=rate.__getitem__)
    row: list[object] = [width, rate[how]]
    figures = []
    for name, called, target in (("PyTorch", "", 0.55), ("Triton's, tuned", ", beside Triton", 0.95)):
        of = ratio(took[how], took[name])
        row += [rate[name], of]
        figures.append(Figure(f"width {width}{called}", rate[how], "TFLOP/s", of, name, target, at_most=False))
    return [*row, how], figures


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

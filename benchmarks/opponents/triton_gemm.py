"""Triton's matrix product in the form of its tutorial: blocks in bands for the cache, tuned over the tutorial's space
and what is usual beside it on a data-centre card; f16, and f32 without tf32 over a space for the ordinary units."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


def _configurations() -> list[Any]:
    """Of f16, whose tiles are too long for exact f32, and of f32."""
    shapes = [
        (128, 256, 64, 3, 8), (128, 256, 64, 4, 8), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4),
        (64, 128, 32, 4, 4), (128, 32, 32, 4, 4), (64, 32, 32, 5, 2), (32, 64, 32, 5, 2), (256, 128, 64, 3, 8),
        (128, 128, 64, 4, 4), (128, 128, 64, 4, 8), (128, 128, 64, 3, 8), (128, 256, 128, 2, 8),
        (128, 128, 16, 3, 8), (128, 64, 16, 4, 4), (64, 128, 16, 4, 4), (128, 256, 16, 3, 8), (128, 128, 32, 3, 8),
        (64, 64, 16, 4, 4),
    ]  # fmt: skip
    return [
        triton.Config({"BM": m, "BN": n, "BK": k, "GROUP": 8}, num_stages=stages, num_warps=warps)
        for m, n, k, stages, warps in shapes
    ]


def _fitting(configurations: list[Any], given: dict[str, Any], **_: Any) -> list[Any]:
    exact = given["a_ptr"].dtype == torch.float32
    return [one for one in configurations if (one.kwargs["BK"] <= 32 if exact else one.kwargs["BK"] >= 32)]


@triton.autotune(
    configs=_configurations(), key=["M", "N", "K", "EXACT"], prune_configs_by={"early_config_prune": _fitting}
)
@triton.jit
def _product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    in_group = GROUP * tiles_n
    group = pid // in_group
    first_m = group * GROUP
    rows = min(tiles_m - first_m, GROUP)
    pid_m = first_m + ((pid % in_group) % rows)
    pid_n = (pid % in_group) // rows
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + (offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee" if EXACT else None)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    c = total.to(c_ptr.dtype.element_ty)
    offs_cm = pid_m * BM + tl.arange(0, BM)
    offs_cn = pid_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, c, mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


def product(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """c = a b, f16 with f32 sums, or f32."""
    (m, k), n = a.shape, b.shape[1]

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)

    _product[grid](
        a, b, c, m, n, k, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        EXACT=a.dtype == torch.float32,
    )  # fmt: skip


def chosen() -> str:
    return str(_product.best_config)

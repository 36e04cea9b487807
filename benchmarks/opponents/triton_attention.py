"""Triton's attention in the form of its tutorial (forward, no mask): one pass over keys and values, base-two exponents,
tuned over the tutorial's blocks, stages and warps."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


def _configurations() -> list[Any]:
    return [
        triton.Config({"BM": m, "BN": n}, num_stages=stages, num_warps=warps)
        for m in (64, 128)
        for n in (32, 64, 128)
        for stages in (2, 3, 4)
        for warps in (4, 8)
        if not (m == 64 and warps == 8)
    ]


@triton.autotune(configs=_configurations(), key=["length", "D"])
@triton.jit
def _attention(Q, K, V, Out, scale, length, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    start = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * length * D
    offs_m = start * BM + tl.arange(0, BM)
    offs_n = tl.arange(0, BN)
    offs_d = tl.arange(0, D)
    q = tl.load(Q + base + offs_m[:, None] * D + offs_d[None, :])
    k_ptrs = K + base + offs_n[None, :] * D + offs_d[:, None]
    v_ptrs = V + base + offs_n[:, None] * D + offs_d[None, :]
    top = tl.zeros([BM], dtype=tl.float32) - float("inf")
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    scale2 = scale * 1.44269504
    for _ in range(0, length, BN):
        k = tl.load(k_ptrs)
        s = tl.dot(q, k)
        higher = tl.maximum(top, tl.max(s, 1) * scale2)
        p = tl.math.exp2(s * scale2 - higher[:, None])
        shrink = tl.math.exp2(top - higher)
        sums = tl.sum(p, 1)
        acc = acc * shrink[:, None]
        v = tl.load(v_ptrs)
        acc = tl.dot(p.to(tl.float16), v, acc)
        total = total * shrink + sums
        top = higher
        k_ptrs += BN * D
        v_ptrs += BN * D
    acc = acc / total[:, None]
    tl.store(Out + base + offs_m[:, None] * D + offs_d[None, :], acc.to(tl.float16))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, scale: float) -> None:
    """out = softmax(q k^T scale) v for tensors [heads, length, width] of f16; the length is a multiple of 128."""
    heads, length, width = q.shape

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(length, meta["BM"]), heads

    _attention[grid](q, k, v, out, scale, length, D=width)


def chosen() -> str:
    return str(_attention.best_config)

"""Triton's layer norm in the form of its tutorial (forward: a program a row, passes over the row in blocks), and an RMS
norm in the same form, of which the tutorials have none; tuned over blocks and warps."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


def _configurations() -> list[Any]:
    return [triton.Config({"BLOCK": block}, num_warps=warps) for block in (1024, 2048, 4096) for warps in (4, 8, 16)]


@triton.autotune(configs=_configurations(), key=["columns"])
@triton.jit
def _layer_norm(given, out, weight, bias, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    given += row * stride
    out += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(given + at, mask=at < columns, other=0.0)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(given + at, mask=at < columns, other=0.0)
        x = tl.where(at < columns, x - mean, 0.0)
        squares += x * x
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        x = tl.load(given + at, mask=inside, other=0.0)
        y = (x - mean) * scale * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
        tl.store(out + at, y, mask=inside)


@triton.autotune(configs=_configurations(), key=["columns"])
@triton.jit
def _rms_norm(given, out, weight, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    given += row * stride
    out += row * stride
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(given + at, mask=at < columns, other=0.0)
        squares += x * x
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        x = tl.load(given + at, mask=inside, other=0.0)
        tl.store(out + at, x * scale * tl.load(weight + at, mask=inside), mask=inside)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, out: torch.Tensor, eps: float) -> None:
    """out = (x - mean) / sqrt(variance + eps) * weight + bias over the rows of f32 matrices."""
    _layer_norm[(x.shape[0],)](x, out, weight, bias, x.stride(0), x.shape[1], eps)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor, eps: float) -> None:
    """out = x / sqrt(mean of squares + eps) * weight over the rows of f32 matrices."""
    _rms_norm[(x.shape[0],)](x, out, weight, x.stride(0), x.shape[1], eps)


def chosen() -> str:
    return f"layer norm {_layer_norm.best_config}; RMS norm {_rms_norm.best_config}"

"""Kernels that are fused in tests: what is said of them, run by the reference runtime, emitted, on a card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import phobos
from phobos.runtime.kernel import Kernels

CHAIN = """
kernel double(X: tensor<f32>[N], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
kernel add(Y: tensor<f32>[N], Z: tensor<f32>[N]) {
    let p = ctx.block.x
    Z[p * 128 :+ 128] = Y[p * 128 :+ 128] + 1.0
}
kernel triple(X: tensor<f32>[N], W: tensor<f32>[N]) {
    let p = ctx.block.x
    W[p * 32 :+ 32] = X[p * 32 :+ 32] * 3.0
}
kernel both(Z: tensor<f32>[N], W: tensor<f32>[N], R: tensor<f32>[N]) {
    let p = ctx.block.x
    R[p * 64 :+ 64] = Z[p * 64 :+ 64] + W[p * 64 :+ 64]
}
kernel back(Y: tensor<f32>[N], X: tensor<f32>[N]) {
    let p = ctx.block.x
    X[p * 64 :+ 64] = Y[p * 64 :+ 64]
}
"""

LAUNCHED = """
@launch(32)
kernel double(X: tensor<f32>[N], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
@launch(32)
kernel add(Y: tensor<f32>[N], Z: tensor<f32>[N], a: f32) {
    let p = ctx.block.x
    Z[p * 128 :+ 128] = Y[p * 128 :+ 128] + a
}
@launch(32)
kernel triple(X: tensor<f32>[N], W: tensor<f32>[N]) {
    let p = ctx.block.x
    if p == 1 { return }
    W[p * 32 :+ 32] = X[p * 32 :+ 32] * 3.0
}
@launch(32)
kernel both(Z: tensor<f32>[N], W: tensor<f32>[N], R: tensor<f32>[N]) {
    let p = ctx.block.x
    R[p * 64 :+ 64] = Z[p * 64 :+ 64] + W[p * 64 :+ 64]
}
"""

SOFTMAX = """
kernel largest(X: tensor<f32>[R, C], M: tensor<f32>[R, 1]) {
    let row = ctx.block.x
    var m: tile<f32>[1, 64] = X[row :+ 1, 0 :+ 64]
    for c in range(64, C, 64) { m = tmax(m, X[row :+ 1, c :+ 64]) }
    M[row :+ 1, 0 :+ 1] = rowmax(m)
}
kernel total(X: tensor<f32>[R, C], M: tensor<f32>[R, 1], S: tensor<f32>[R, 1]) {
    let row = ctx.block.x
    var s: tile<f32>[1, 64] = exp(X[row :+ 1, 0 :+ 64] - M[row :+ 1, 0 :+ 1])
    for c in range(64, C, 64) { s += exp(X[row :+ 1, c :+ 64] - M[row :+ 1, 0 :+ 1]) }
    S[row :+ 1, 0 :+ 1] = rowsum(s)
}
kernel divide(X: tensor<f32>[R, C], M: tensor<f32>[R, 1], S: tensor<f32>[R, 1], Y: tensor<f32>[R, C]) {
    let row = ctx.block.y
    let c = ctx.block.x * 64
    Y[row :+ 1, c :+ 64] = exp(X[row :+ 1, c :+ 64] - M[row :+ 1, 0 :+ 1]) / S[row :+ 1, 0 :+ 1]
}
"""
SOFTMAX_64 = SOFTMAX.replace("\nkernel", "\n@launch(64)\nkernel")

MATRICES = """
@launch(64)
kernel turn(A: tensor<f32>[M, K], T: tensor<f32>[K, M]) {
    let i = ctx.block.x * 16
    let j = ctx.block.y * 16
    var t: tile<f32>[16, 16] = A[i :+ 16, j :+ 16]
    T[j :+ 16, i :+ 16] = transpose(t)
}
@launch(64)
@dynshared
kernel product(T: tensor<f32>[K, M], A: tensor<f32>[M, K], C: tensor<f32>[K, K]) {
    let i = ctx.block.x * 16
    let j = ctx.block.y * 16
    var c: tile<f32>[16, 16] = 0.0
    for k in range(0, M, 16) { c += dot(T[i :+ 16, k :+ 16], A[k :+ 16, j :+ 16]) }
    C[i :+ 16, j :+ 16] = c
}
@launch(64, 2)
kernel rows(A: tensor<f32>[M, K], S: tensor<f32>[M, 1]) {
    let i = ctx.block.x * 16
    var s: tile<f32>[16, 1] = 0.0
    for k in range(0, K, 16) { s += rowsum(A[i :+ 16, k :+ 16]) }
    S[i :+ 16, 0 :+ 1] = s
}
"""

TILES = """
@launch(32)
kernel first(A: tensor<i32>[P]) {
    let p = ctx.block.x
    A[p] = i32(p) * 3 + 1
}
@launch(32)
kernel second(A: tensor<i32>[P], B: tensor<i32>[Q]) {
    let q = ctx.block.x
    B[q] = i32(A[(q * 7) % P]) + i32(q)
}
"""


def fusion_of(text: str, names: str, order: str = "ask") -> phobos.Kernel:
    kernels = Kernels("t.ph", text)
    return phobos.fuse(*(kernels[name] for name in names.split("+")), order=order)


def copies(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: array.copy() for name, array in arrays.items()}


def given_to(kernel: phobos.Kernel, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the arrays that a kernel takes."""
    return {name: arrays[name] for name in kernel.analysed()[1].program.tensors}


def one_after_another(
    run: Callable[..., object], text: str, names: str, arrays: dict[str, Any], **numbers: float
) -> dict[str, Any]:
    """The arrays after `run` has run the kernels of a fusion each by itself."""
    kernels = Kernels("t.ph", text)
    for name in names.split("+"):
        kernel = kernels[name]
        run(kernel, arrays, **{n: numbers[n] for n in kernel.analysed()[1].program.params})
    return arrays

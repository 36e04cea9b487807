"""The reference runtime against the same computation hand-written in NumPy: whole arrays, `out=`, BLAS.

The opponent of each kernel stands beside it. Ratios are medians of interleaved rounds, so that a busy machine
slows both; the targets are at 4 M elements or more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from figures import Figure, finish, machine, number
from products import product

import phobos

SAXPY = """
@autotune(BLOCK in [1024])
kernel saxpy(X: tensor<f32>[N], Y: tensor<f32>[N], alpha: f32) {
  let start = ctx.block.x * BLOCK
  Y[start :+ BLOCK] = X[start :+ BLOCK] * alpha + Y[start :+ BLOCK]
}
"""

SOFTMAX = """
@autotune(WIDTH in [4096])
kernel softmax(X: tensor<f32>[M, WIDTH], Y: tensor<f32>[M, WIDTH]) {
  let row = ctx.block.x
  let x = X[row :+ 1, 0 :+ WIDTH]
  let e = exp(x - rowmax(x))
  Y[row :+ 1, 0 :+ WIDTH] = e / rowsum(e)
}
"""

LAYER_NORM = """
@autotune(WIDTH in [4096])
kernel layer_norm(X: tensor<f32>[M, WIDTH], G: tensor<f32>[1, WIDTH], B: tensor<f32>[1, WIDTH],
                  Y: tensor<f32>[M, WIDTH]) {
  let row = ctx.block.x
  let x = X[row :+ 1, 0 :+ WIDTH]
  let centred = x - rowsum(x) / f32(WIDTH)
  let scale = 1.0 / sqrt(rowsum(centred * centred) / f32(WIDTH) + 0.00001)
  Y[row :+ 1, 0 :+ WIDTH] = centred * scale * G[0 :+ 1, 0 :+ WIDTH] + B[0 :+ 1, 0 :+ WIDTH]
}
"""

GEMM = product(deep=(16, 64))

ATTENTION = """
@autotune(BR in [128], BC in [16, 64], D in [64])
kernel attention(Q: tensor<f32>[L, D], K: tensor<f32>[L, D], V: tensor<f32>[L, D], O: tensor<f32>[L, D], scale: f32) {
  let row = ctx.block.x * BR
  var q = Q[row :+ BR, 0 :+ D]
  q = q * scale
  var top: tile<f32>[BR, 1] = -3.0e38
  var den: tile<f32>[BR, 1] = 0.0
  var acc: tile<f32>[BR, D] = 0.0
  for t in range(0, L, BC) {
    let s = dot_t(q, K[t :+ BC, 0 :+ D])
    let higher = tmax(top, rowmax(s))
    let p = exp(s - higher)
    let shrink = exp(top - higher)
    den = den * shrink + rowsum(p)
    acc = acc * shrink + dot(p, V[t :+ BC, 0 :+ D])
    top = higher
  }
  O[row :+ BR, 0 :+ D] = acc / den
}
"""


def numpy_saxpy(x: Any, y: Any, alpha: float, spare: Any) -> None:
    np.multiply(x, np.float32(alpha), out=spare)
    np.add(spare, y, out=y)


def numpy_softmax(x: Any, y: Any) -> None:
    np.subtract(x, x.max(axis=1, keepdims=True), out=y)
    np.exp(y, out=y)
    np.divide(y, y.sum(axis=1, keepdims=True), out=y)


def numpy_layer_norm(x: Any, g: Any, b: Any, y: Any) -> None:
    np.subtract(x, x.mean(axis=1, keepdims=True), out=y)
    scale = 1.0 / np.sqrt(np.einsum("ij,ij->i", y, y)[:, None] / np.float32(x.shape[1]) + np.float32(1e-5))
    np.multiply(y, scale, out=y)
    np.multiply(y, g, out=y)
    np.add(y, b, out=y)


def numpy_gemm(a: Any, b: Any, c: Any) -> None:
    np.matmul(a, b, out=c)


def numpy_attention(q: Any, k: Any, v: Any, o: Any, scale: float, scores: Any) -> None:
    np.matmul(q * np.float32(scale), k.T, out=scores)
    np.subtract(scores, scores.max(axis=1, keepdims=True), out=scores)
    np.exp(scores, out=scores)
    np.divide(scores, scores.sum(axis=1, keepdims=True), out=scores)
    np.matmul(scores, v, out=o)


@dataclass
class Case:
    name: str
    target: float
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    rounds: int


def cases() -> list[Case]:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    out: list[Case] = []
    n = 1 << 22
    x, y, y2, spare = draw(n), draw(n), draw(n), draw(n)
    saxpy = phobos.kernel(SAXPY)
    out.append(Case("saxpy", 3, lambda: saxpy.reference(x, y, 0.5), lambda: numpy_saxpy(x, y2, 0.5, spare), 9))
    out.append(
        Case("saxpy, races", 30, lambda: saxpy.reference(x, y, 0.5, detect="races"),
             lambda: numpy_saxpy(x, y2, 0.5, spare), 5)
    )  # fmt: skip
    rows, rows2, wide = draw(1024, 4096), draw(1024, 4096), draw(1024, 4096)
    g, b = draw(1, 4096), draw(1, 4096)
    softmax, norm = phobos.kernel(SOFTMAX), phobos.kernel(LAYER_NORM)
    out.append(Case("softmax", 3, lambda: softmax.reference(wide, rows), lambda: numpy_softmax(wide, rows2), 9))
    out.append(
        Case("softmax, races", 30, lambda: softmax.reference(wide, rows, detect="races"),
             lambda: numpy_softmax(wide, rows2), 5)
    )  # fmt: skip
    out.append(
        Case("layer norm", 3, lambda: norm.reference(wide, g, b, rows), lambda: numpy_layer_norm(wide, g, b, rows2), 9)
    )
    a, bb, c, c2 = draw(2048, 2048), draw(2048, 2048), draw(2048, 2048), draw(2048, 2048)
    gemm = phobos.kernel(GEMM)
    for width, target in ((16, 8), (64, 5)):
        out.append(
            Case(f"gemm, K tile {width}", target,
                 lambda width=width: gemm.reference(a, bb, c, constants={"BK": width}),  # type: ignore[misc]
                 lambda: numpy_gemm(a, bb, c2), 3)
        )  # fmt: skip
    length = 4096
    q, k, v, o, o2 = (draw(length, 64) for _ in range(5))
    scores = draw(length, length)
    attention = phobos.kernel(ATTENTION)
    for width, target in ((16, 8), (64, 5)):
        out.append(
            Case(f"attention, K tile {width}", target,
                 lambda width=width: attention.reference(q, k, v, o, 0.125, constants={"BC": width}),  # type: ignore[misc]
                 lambda: numpy_attention(q, k, v, o2, 0.125, scores), 3)
        )  # fmt: skip
    out.append(
        Case("attention, K tile 64, races", 30,
             lambda: attention.reference(q, k, v, o, 0.125, constants={"BC": 64}, detect="races"),
             lambda: numpy_attention(q, k, v, o2, 0.125, scores), 3)
    )  # fmt: skip
    return out


def measure(case: Case) -> dict[str, Any]:
    """Medians of interleaved rounds: milliseconds, and processor time of all cores, which a busy machine distorts
    less. The reference uses one core for products, NumPy all of them."""
    verdict = case.ours()
    case.theirs()
    works = {"numpy": case.theirs, "ours": case.ours}
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(case.rounds):
        for name, work in works.items():
            begun = perf_counter(), process_time()
            work()
            took[name].append((1e3 * (perf_counter() - begun[0]), 1e3 * (process_time() - begun[1])))
    (theirs, their_cpu), (ours, our_cpu) = ([median(column) for column in zip(*rows)] for rows in took.values())
    return {
        "name": case.name, "ours_ms": ours, "numpy_ms": theirs, "ratio": ours / theirs, "target": case.target,
        "ours_cpu_ms": our_cpu, "numpy_cpu_ms": their_cpu,
        "block_phases": verdict.block_phases, "batched": verdict.batched,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    arguments = parser.parse_args()
    rows = []
    for case in cases():
        if arguments.only in case.name:
            row = measure(case)
            rows.append(row)
            print(
                f"{row['name']:<28} {row['ours_ms']:9.1f} ms {row['numpy_ms']:9.1f} ms  {row['ratio']:6.2f}x of "
                f"{row['target']}x   {row['batched']}/{row['block_phases']} batched",
                flush=True,
            )
    figures = [Figure(row["name"], row["ours_ms"], "ms", row["ratio"], "NumPy", row["target"]) for row in rows]
    finish("The reference runtime beside NumPy", figures, {**machine(), "numpy": np.__version__}, [
        "| milliseconds | ours | NumPy | ratio | processor time, ours | NumPy | block-phases in batches |\n"
        "|---|---|---|---|---|---|---|\n"
        + "".join(
            f"| {row['name']} | {number(row['ours_ms'])} | {number(row['numpy_ms'])} | {number(row['ratio'])} "
            f"| {number(row['ours_cpu_ms'])} | {number(row['numpy_cpu_ms'])} "
            f"| {row['batched']} of {row['block_phases']} |\n"
            for row in rows
        )
    ])  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())

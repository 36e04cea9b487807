"""Kernels that move memory, against a hand-written kernel, a device copy, Triton and PyTorch, all in one run.
Usage: python benchmarks/stream.py [--json FILE]"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy
from figures import Figure
from gpu_common import finish, micros, table

from phobos.runtime.kernel import kernel

try:
    import torch
except ImportError:
    torch = None

TARGETS = {"saxpy": 0.95, "persistent saxpy": 0.95, "softmax": 0.9, "layer norm": 0.9, "RMS norm": 0.9}
N = 1 << 28
ROWS, COLUMNS = 16384, 4096

SAXPY = kernel("""
@autotune(BLOCK in [2048])
kernel saxpy(X: tensor<f32>[N], Y: tensor<f32>[N], alpha: f32) {
  let start = ctx.block.x * BLOCK
  Y[start :+ BLOCK] = X[start :+ BLOCK] * alpha + Y[start :+ BLOCK]
}
""")

SAXPY_PERSISTENT = kernel("""
@persistent
@autotune(BLOCK in [2048])
kernel saxpy(X: tensor<f32>[N], Y: tensor<f32>[N], alpha: f32) {
  for start in range(ctx.block.x * BLOCK, N, ctx.blocks.x * BLOCK) {
    Y[start :+ BLOCK] = X[start :+ BLOCK] * alpha + Y[start :+ BLOCK]
  }
}
""")

COPY = kernel("""
@autotune(BLOCK in [2048])
kernel copy(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let start = ctx.block.x * BLOCK
  Y[start :+ BLOCK] = X[start :+ BLOCK]
}
""")

SOFTMAX = kernel("""
@launch(256)
@autotune(C in [4096])
kernel softmax(X: tensor<f32>[M, C], Y: tensor<f32>[M, C]) {
  let row = ctx.block.x
  var x = X[row :+ 1, 0 :+ C]
  let e = exp(x - rowmax(x))
  Y[row :+ 1, 0 :+ C] = e / rowsum(e)
}
""")

LAYER_NORM = kernel("""
@launch(256)
@autotune(C in [4096])
kernel layer_norm(X: tensor<f32>[M, C], W: tensor<f32>[1, C], B: tensor<f32>[1, C], Y: tensor<f32>[M, C], part: f32) {
  let row = ctx.block.x
  var x = X[row :+ 1, 0 :+ C]
  let mean = rowsum(x) * part
  let d = x - mean
  let scale = sqrt(rowsum(d * d) * part + 0.00001)
  Y[row :+ 1, 0 :+ C] = d / scale * W[0 :+ 1, 0 :+ C] + B[0 :+ 1, 0 :+ C]
}
""")

RMS_NORM = kernel("""
@launch(256)
@autotune(C in [4096])
kernel rms_norm(X: tensor<f32>[M, C], W: tensor<f32>[1, C], Y: tensor<f32>[M, C], part: f32) {
  let row = ctx.block.x
  var x = X[row :+ 1, 0 :+ C]
  let scale = sqrt(rowsum(x * x) * part + 0.00001)
  Y[row :+ 1, 0 :+ C] = x / scale * W[0 :+ 1, 0 :+ C]
}
""")

BY_HAND = cupy.RawKernel("""
extern "C" __global__ void __launch_bounds__(256) saxpy(const float4* x, float4* y, float a, long long n) {
  const long long i = blockIdx.x * 512LL + threadIdx.x;
  float4 u = x[i], v = x[i + 256], p = y[i], q = y[i + 256];
  p.x = u.x * a + p.x; p.y = u.y * a + p.y; p.z = u.z * a + p.z; p.w = u.w * a + p.w;
  q.x = v.x * a + q.x; q.y = v.y * a + q.y; q.z = v.z * a + q.z; q.w = v.w * a + q.w;
  y[i] = p; y[i + 256] = q;
}
""", "saxpy")  # fmt: skip


def stream() -> cupy.cuda.Stream:
    return cupy.cuda.get_current_stream()


def there(work: Callable[[], object]) -> Callable[[], None]:
    """`work` of PyTorch on CuPy's current stream."""

    def run() -> None:
        with torch.cuda.stream(torch.cuda.ExternalStream(stream().ptr)):
            work()

    return run


def _vectors(add: Callable[..., float]) -> tuple[float, float]:
    """saxpy and copies of 2^28 elements; gives the rates of a device copy and of the hand-written saxpy."""
    x, y = cupy.random.rand(N, dtype=numpy.float32), cupy.random.rand(N, dtype=numpy.float32)
    # A copy that is a node of a graph goes to the copy engine, which is slower here: copies are timed outside one.
    copies = {"cudaMemcpyAsync": lambda: y.data.copy_from_device_async(x.data, x.nbytes, stream())}
    if torch is not None:
        tx, ty = torch.from_dlpack(x), torch.from_dlpack(y)
        copies["PyTorch copy_"] = there(lambda: ty.copy_(tx))
    copy = max(add(f"device copy ({name})", 8 * N, work, captured=False) for name, work in copies.items())
    add("copy, ours / the better copy", 8 * N, lambda: COPY(x, y), copy)
    check = y.copy()
    arguments = (x, y, numpy.float32(2.5), numpy.int64(N))
    hand = add("saxpy by hand (float4)", 12 * N, lambda: BY_HAND((N // 2048,), (256,), arguments))
    y[...] = check
    SAXPY(x, y, 2.5)
    some = slice(0, 1 << 20)
    assert bool(cupy.allclose(y[some], check[some] + 2.5 * x[some])), "saxpy is wrong"
    add("saxpy, ours / by hand", 12 * N, lambda: SAXPY(x, y, 2.5), hand)
    tried = {}
    for block in (1024, 2048, 4096, 8192):
        full = SAXPY_PERSISTENT.persistent_grid(constants={"BLOCK": block})
        for part in (1, 2, 4):
            chosen: dict[str, Any] = {"constants": {"BLOCK": block}, "grid": full // part}
            tried[block, full // part] = micros(lambda c=chosen: SAXPY_PERSISTENT(x, y, 2.5, **c), repeat=5)
    block, grid = min(tried, key=lambda key: tried[key])
    best: dict[str, Any] = {"constants": {"BLOCK": block}, "grid": grid}
    name = f"persistent saxpy, ours (BLOCK {block}, grid {grid}) / by hand"
    add(name, 12 * N, lambda: SAXPY_PERSISTENT(x, y, 2.5, **best), hand)
    add("cupy.add / by hand", 12 * N, lambda: cupy.add(y, x, out=y), hand)
    return copy, hand


def _triton(add: Callable[..., float], x: Any, w: Any, b: Any, out: Any, copy: float) -> None:
    """Triton's kernels on the same rows, tuned, each compared with PyTorch before it is timed."""
    try:
        from opponents import triton_norms, triton_softmax
    except ImportError:
        return
    softmax = triton_softmax.Softmax(out, x)
    eps = 1e-5
    for name, work, want in (
        ("softmax", softmax, torch.softmax(x, 1)),
        ("layer norm", lambda: triton_norms.layer_norm(x, w, b, out, eps), torch.layer_norm(x, (COLUMNS,), w[0], b[0])),
        ("RMS norm", lambda: triton_norms.rms_norm(x, w, out, eps), torch.rms_norm(x, (COLUMNS,), w[0], eps)),
    ):
        out.fill_(float("nan"))
        work()
        torch.testing.assert_close(out, want, rtol=1e-3, atol=1e-5)
        add(f"{name}, Triton, tuned / copy", 8 * x.numel(), there(work), copy)
    print(f"Triton: softmax by {softmax}; {triton_norms.chosen()}", flush=True)


def main() -> None:
    rows: list[list[Any]] = []
    figures: dict[str, float] = {}

    def add(
        name: str, moved: int, work: Callable[[], object], base: float | None = None, captured: bool = True
    ) -> float:
        time = micros(work, repeat=20, inner=1 if captured else 10, captured=captured)
        rate = moved / time / 1e6
        figures[name] = rate
        rows.append([name, time, rate, rate / base if base else ""])
        return rate

    copy, _ = _vectors(add)
    cupy.get_default_memory_pool().free_all_blocks()
    m = cupy.random.rand(ROWS, COLUMNS, dtype=numpy.float32)
    out = cupy.zeros_like(m)
    w, b = cupy.random.rand(1, COLUMNS, dtype=numpy.float32), cupy.random.rand(1, COLUMNS, dtype=numpy.float32)
    moved = 8 * m.size
    add("softmax, ours / copy", moved, lambda: SOFTMAX(m, out), copy)
    want = cupy.exp(m - m.max(1, keepdims=True))
    want /= want.sum(1, keepdims=True)
    assert bool(cupy.allclose(out, want, rtol=1e-4, atol=1e-7)), "softmax is wrong"
    add("layer norm, ours / copy", moved, lambda: LAYER_NORM(m, w, b, out, 1 / COLUMNS), copy)
    centred = m - m.mean(1, keepdims=True)
    want = centred / cupy.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * w + b
    assert bool(cupy.allclose(out, want, rtol=1e-3, atol=1e-4)), "layer norm is wrong"
    add("RMS norm, ours / copy", moved, lambda: RMS_NORM(m, w, out, 1 / COLUMNS), copy)
    if torch is not None:
        tm, tw, tb = (torch.from_dlpack(a) for a in (m, w, b))
        to = torch.empty_like(tm)
        add("softmax, PyTorch / copy", moved, there(lambda: torch.softmax(tm, 1, out=to)), copy)
        norm, rms = torch.nn.functional.layer_norm, torch.nn.functional.rms_norm
        add("layer norm, PyTorch / copy", moved, there(lambda: norm(tm, (COLUMNS,), tw[0], tb[0])), copy)
        add("RMS norm, PyTorch / copy", moved, there(lambda: rms(tm, (COLUMNS,), tw[0], 1e-5)), copy)
        _triton(add, tm, tw, tb, to, copy)
    head = ["", "us", "TB/s", "ratio"]
    shaped = [
        Figure(name, rate, "TB/s", ratio or None, "it" if ratio else "", TARGETS.get(name.partition(",")[0]), False)
        if "ours" in name else Figure(name, rate, "TB/s", ratio or None, "it" if ratio else "")
        for name, _, rate, ratio in rows
    ]  # fmt: skip
    tables = [table(f"saxpy of 2^28 f32; rows of {COLUMNS} f32", head, rows)]
    finish("Streaming kernels", tables, {"TB/s": figures}, shaped)


if __name__ == "__main__":
    main()

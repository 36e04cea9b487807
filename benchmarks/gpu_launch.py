"""What a launch costs the host, and what the first one costs. Usage: python benchmarks/gpu_launch.py

Byte code is kept, as it is for a package that is installed; a process before the first one writes it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count, cycle
from pathlib import Path

from figures import Figure

SAXPY = """
@autotune(BLOCK in [1024])
kernel saxpy(X: tensor<f32>[N], Y: tensor<f32>[N], alpha: f32) {
  let start = ctx.block.x * BLOCK
  Y[start :+ BLOCK] = X[start :+ BLOCK] * alpha + Y[start :+ BLOCK]
}
"""

FIRST = """
import time, numpy, cupy
x = cupy.zeros(1 << 20, numpy.float32); y = cupy.zeros_like(x); cupy.cuda.Device().synchronize()
start = time.perf_counter()
from phobos.runtime.kernel import kernel
made = kernel(TEXT)
made(x, y, 2.0)
cupy.cuda.Device().synchronize()
print(1e3 * (time.perf_counter() - start))
"""


def first_ms(cache: str, byte_code: str) -> float:
    """Milliseconds from importing Phobos to the end of the first launch, in a new process with CuPy and a context."""
    own = {"PHOBOS_CACHE": cache, "PYTHONPYCACHEPREFIX": byte_code, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, "-c", FIRST.replace("TEXT", repr(SAXPY))],
        env={**os.environ, **own}, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return float(done.stdout)


def again_us(work: Callable[[], object], times: int = 2000) -> float:
    """Microseconds of the host for each of many launches in a row."""
    import cupy

    for _ in range(20):
        work()
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    for _ in range(times):
        work()
    elapsed = time.perf_counter() - start
    cupy.cuda.Device().synchronize()
    return 1e6 * elapsed / times


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = f"{folder}/cache"
        first_ms(f"{folder}/another", f"{folder}/code")
        cold, warm = first_ms(cache, f"{folder}/code"), min(first_ms(cache, f"{folder}/code") for _ in range(3))
        cubins = len(list(Path(cache).rglob("*")))
    assert cubins > 0
    import cupy
    import numpy

    from phobos.runtime.kernel import kernel

    x, y = cupy.zeros(1024, numpy.float32), cupy.zeros(1024, numpy.float32)
    made = kernel(SAXPY)
    text = 'extern "C" __global__ void saxpy(float* x, float* y, float a) { y[threadIdx.x] += x[threadIdx.x] * a; }'
    raw = cupy.RawKernel(text, "saxpy")
    number = numpy.float32(2.0)
    known = again_us(lambda: made(x, y, 2.0))
    theirs = again_us(lambda: raw((1,), (256,), (x, y, number)))

    import torch
    from opponents.triton_saxpy import saxpy

    arrays = [torch.zeros(1024, device="cuda") for _ in range(512)]
    numbers, pairs = count(), cycle(zip(arrays[::2], arrays[1::2], strict=True))
    moved = again_us(lambda: made(*next(pairs), 0.5 * next(numbers)))
    triton = again_us(lambda: saxpy(*next(pairs), 0.5 * next(numbers)))
    from gpu_common import finish

    finish("Launching", [], {}, [
        Figure("first launch in a new process, beyond CuPy and its context", cold, "ms", target=1000),
        Figure("the same with a warm cache", warm, "ms", target=150),
        Figure("host time of a launch known from before", known, "us", known / theirs, "CuPy's RawKernel"),
        Figure("CuPy's RawKernel", theirs, "us"),
        Figure("host time of a launch on other PyTorch arrays each time", moved, "us", moved / triton, "Triton's"),
        Figure("Triton's", triton, "us"),
    ])  # fmt: skip


if __name__ == "__main__":
    main()

"""Products on tensor cores on the card: whole tiles and ragged ones, every way that operands come, against float64."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from phobos.runtime.cuda import launch
from phobos.runtime.kernel import kernel
from tests.codegen.test_tensorcores import ATTENTION, SHAPES, gemm

pytestmark = pytest.mark.gpu

WHOLE, RAGGED, NARROW = (512, 768, 640), (272, 208, 336), (130, 77, 101)


def product(cupy: Any, text: str, sizes: tuple[int, int, int], dtype: str, transposed: bool) -> None:
    m, n, k = sizes
    random = numpy.random.default_rng(sum(sizes))
    a, b = (random.random(shape) - 0.5 for shape in ((m, k), (n, k) if transposed else (k, n)))
    if dtype == "bf16":
        torch = pytest.importorskip("torch")
        given = [torch.tensor(x, device="cuda").to(torch.bfloat16) for x in (a, b)]
        a, b = (x.double().cpu().numpy() for x in given)
    else:
        given = [cupy.asarray(x.astype(numpy.float16)) for x in (a, b)]
        a, b = (cupy.asnumpy(x).astype(float) for x in given)
    c = cupy.full((m, n), numpy.nan, numpy.float32)
    kernel(text)(*given, c)
    launch.synchronize()
    want = a @ (b.T if transposed else b)
    numpy.testing.assert_allclose(cupy.asnumpy(c), want, atol=1e-4 * float(abs(want).max()))


@pytest.mark.parametrize("sizes", [WHOLE, RAGGED, NARROW], ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, {"rows": 32, "launch": "96"}], ids=str)
def test_products(cupy: Any, shape: dict[str, Any], sizes: tuple[int, int, int]) -> None:
    dtype, transposed = shape.get("dtype", "f16"), shape.get("transposed", False)
    product(cupy, gemm(**shape), sizes, dtype, transposed)


@pytest.mark.parametrize("schedule", ["flat", "persistent-blocked", "persistent-interleaved"])
def test_products_under_a_schedule(cupy: Any, schedule: str) -> None:
    a, b = ((cupy.random.rand(n, 512) - 0.5).astype(numpy.float16) for n in (1024, 512))
    c = cupy.full((1024, 512), numpy.nan, numpy.float32)
    kernel(gemm(**SHAPES[0]))(a, b, c, schedule=schedule, l2_group=4)
    launch.synchronize()
    want = a.astype(numpy.float64) @ b.astype(numpy.float64)
    assert float(abs(c - want).max()) < 1e-3


def test_a_captured_launch_keeps_its_maps(cupy: Any) -> None:
    a, b = ((cupy.random.rand(256, 256) - 0.5).astype(numpy.float16) for _ in range(2))
    c = cupy.zeros((256, 256), numpy.float32)
    made = kernel(gemm())
    made(a, b, c)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        made(a, b, c)
        graph = stream.end_capture()
        for _ in range(3):
            a[...] = (cupy.random.rand(256, 256) - 0.5).astype(numpy.float16)
            c.fill(numpy.nan)
            graph.launch(stream)
            stream.synchronize()
            want = a.astype(numpy.float64) @ b.astype(numpy.float64)
            assert float(abs(c - want).max()) < 1e-3


@pytest.mark.parametrize("length", [64, 200, 1024])
@pytest.mark.parametrize(("threads", "rows"), [(128, 64), (256, 128), (96, 64)])
@pytest.mark.parametrize("query", ["let", "var"])
def test_attention(cupy: Any, length: int, threads: int, rows: int, query: str) -> None:
    text = ATTENTION.format(
        threads=threads, rows=rows, dtype="f16", query=f"{query} q = Q[r :+ {rows}, 0 :+ 32]", weights="p"
    )
    q, k, v = (cupy.random.randn(length, 32).astype(numpy.float16) for _ in range(3))
    out = cupy.full((length, 32), numpy.nan, numpy.float32)
    kernel(text)(q, k, v, out, 0.25)
    launch.synchronize()
    scores = 0.25 * q.astype(numpy.float64) @ k.astype(numpy.float64).T
    weights = cupy.exp(scores - scores.max(axis=1, keepdims=True))
    want = weights @ v.astype(numpy.float64) / weights.sum(axis=1, keepdims=True)
    assert float(abs(out - want).max()) < 5e-3

"""Fusions on a card: the bits of their kernels one after another, launch after launch, and in captured graphs."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import phobos
from phobos.errors import KernelFault, LaunchError
from phobos.runtime.cuda import driver, launch
from tests.fusions import LAUNCHED, MATRICES, SOFTMAX_64, TILES, copies, fusion_of, given_to, one_after_another

LARGE = LAUNCHED.replace("@launch(32)\n", "").replace("p * 64 :+ 64", "p * 1024 :+ 1024")
LARGE = LARGE.replace("p * 128 :+ 128", "p * 2048 :+ 2048").replace("p * 32 :+ 32", "p * 512 :+ 512")
SCHEDULES = ("persistent-interleaved", "persistent-blocked")


def ran(kernel: phobos.Kernel, arrays: dict[str, Any], **how: Any) -> dict[str, Any]:
    program = kernel.analysed()[1].program
    numbers = {name: how.pop(name) for name in program.params}
    kernel(**{name: arrays[name] for name in program.tensors}, **numbers, **how)
    launch.synchronize()
    return arrays


def alike(got: dict[str, Any], want: dict[str, Any]) -> None:
    for name, array in want.items():
        assert got[name].get().tobytes() == array.get().tobytes(), name


def random(cupy: Any, *shape: int) -> Any:
    return cupy.asarray(numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32))


@pytest.mark.parametrize("n", [1000, 100_000, 1_000_003])
@pytest.mark.parametrize("names", ["double+triple", "double+add", "double+triple+add+both"])
def test_chains(cupy, n: int, names: str) -> None:
    given = {name: cupy.full(n, 7, numpy.float32) for name in "YZWR"} | {"X": random(cupy, n)}
    want = one_after_another(ran, LARGE, names, copies(given), a=1.5)
    kernel = fusion_of(LARGE, names)
    alike(ran(kernel, copies(given), a=1.5) if "add" in names else ran(kernel, copies(given)), want)
    numbers = {"a": 1.5} if "add" in names else {}
    for schedule in SCHEDULES:
        for grid in (None, 1, 132, 200):
            most = kernel.plan(**given_to(kernel, given), **numbers, schedule=schedule).grid[0]
            if grid is None or grid <= most:
                alike(ran(kernel, copies(given), **numbers, schedule=schedule, grid=grid), want)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_softmax_over_three_kernels(cupy, schedule: str) -> None:
    x = random(cupy, 777, 960)
    given = {"X": x, "M": random(cupy, 777, 1), "S": random(cupy, 777, 1), "Y": cupy.zeros_like(x)}
    want = one_after_another(ran, SOFTMAX_64, "largest+total+divide", copies(given))
    kernel = fusion_of(SOFTMAX_64, "largest+total+divide")
    got = ran(kernel, copies(given), schedule=schedule)
    alike(got, want)
    e = cupy.exp(x - x.max(1, keepdims=True))
    assert bool(cupy.allclose(got["Y"], e / e.sum(1, keepdims=True), rtol=1e-4))


def test_kernels_take_turns_in_shared_memory(cupy) -> None:
    given = {
        "A": random(cupy, 400, 560), "T": random(cupy, 560, 400), "C": random(cupy, 560, 560), "S": random(cupy, 400, 1)
    }  # fmt: skip
    want = one_after_another(ran, MATRICES, "turn+product+rows", copies(given))
    kernel = fusion_of(MATRICES, "turn+product+rows")
    for grid in (None, 1, 100):
        alike(ran(kernel, copies(given), grid=grid), want)


@pytest.mark.parametrize(("p", "q"), [(132, 132), (1000, 50), (64, 5000)])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_two_phases_are_shared_out_each_by_itself(cupy, p: int, q: int, schedule: str) -> None:
    kernel = fusion_of(TILES, "first+second", "barrier")
    a = numpy.arange(p, dtype=numpy.int32) * 3 + 1
    want = a[numpy.arange(q) * 7 % p] + numpy.arange(q)
    for grid in (132, None, 7):
        given = {"A": cupy.zeros(p, numpy.int32), "B": cupy.zeros(q, numpy.int32)}
        got = ran(kernel, given, schedule=schedule, grid=grid)
        assert (got["A"].get() == a).all() and (got["B"].get() == want).all()


def test_a_thousand_launches_in_a_row(cupy) -> None:
    """Each launch reads what other blocks of it wrote before its barrier: nothing stale is ever seen."""
    kernel = fusion_of(TILES, "first+second", "barrier")
    p, q = 1056, 1056
    given = {"A": cupy.zeros(p, numpy.int32), "B": cupy.zeros(q, numpy.int32)}
    want = cupy.asarray((numpy.arange(p) * 3 + 1)[numpy.arange(q) * 7 % p] + numpy.arange(q), dtype=numpy.int32)
    wrong = cupy.zeros((), numpy.int64)
    for _ in range(1000):
        given["A"].fill(0)
        given["B"].fill(0)
        kernel(**given)
        wrong += (given["B"] != want).sum()
    launch.synchronize()
    assert int(wrong) == 0


def test_captured_and_replayed(cupy) -> None:
    names = "double+triple+add+both"
    n = 50_000
    given = {name: cupy.zeros(n, numpy.float32) for name in "YZWR"} | {"X": random(cupy, n)}
    want = one_after_another(ran, LARGE, names, copies(given), a=0.5)
    kernel = fusion_of(LARGE, names)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        kernel(**given, a=0.5)
        stream.synchronize()
        stream.begin_capture()
        kernel(**given, a=0.5)
        kernel(**given, a=0.5)
        graph = stream.end_capture()
        for _ in range(20):
            for name in "YZWR":
                given[name].fill(0)
            graph.launch()
        stream.synchronize()
    alike(given, want)


def test_the_plan_and_residency(cupy) -> None:
    kernel = fusion_of(LARGE, "double+add")
    given = {name: cupy.zeros(10_000_000, numpy.float32) for name in "XYZ"}
    plan = kernel.plan(**given, a=1.0)
    assert plan.ctas_per_sm is not None and plan.grid[0] == plan.ctas_per_sm * driver.multiprocessors(0)
    with pytest.raises(LaunchError, match="workers is not resident"):
        kernel(**given, a=1.0, grid=plan.grid[0] + 1)
    with pytest.raises(LaunchError, match="has no grid barrier"):
        kernel(**given, a=1.0, schedule="flat")


def test_a_worker_that_never_comes(cupy, still_usable) -> None:
    text = """
kernel endless(X: tensor<f32>[N], V: tensor<f32>[N]) {
    let p = ctx.block.x
    var n = 1
    if p == 3 { while n > 0 { n = n + 2 - 1 } }
    V[p * 64 :+ 64] = X[p * 64 :+ 64]
}
kernel then(V: tensor<f32>[N], W: tensor<f32>[N]) {
    let p = ctx.block.x
    W[p * 64 :+ 64] = V[p * 64 :+ 64]
}
"""
    kernel = fusion_of(text, "endless+then")
    given = {name: cupy.zeros(64 * 20, numpy.float32) for name in "XVW"}
    kernel(**given, timeout=0.2, unchecked=True)
    with pytest.raises(KernelFault, match="waited longer than") as caught:
        launch.synchronize()
    assert caught.value.kind == "timeout"

"""Variants on a card: here the launch path over a driver that is this machine, on a card the real thing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phobos.runtime.cuda import driver
from phobos.runtime.cuda import host as host_runs
from phobos.runtime.options import LaunchOptions
from phobos.runtime.tuning.ahead import Ahead, ahead
from phobos.runtime.tuning.judging import Row, Task, bound_at, judge, options_of
from phobos.runtime.tuning.on_device import Device
from phobos.runtime.tuning.space import Variant
from tests.codegen import host
from tests.codegen.fake_device import FakeDriver
from tests.tune.planted import Miscompiled
from tests.tune.support import ROWS, SCALE, STAGED, problem_of

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler")


def on_card(text: str, dims: dict[str, int], names: dict[str, str], **more: Any) -> Any:
    return problem_of(text, dims, names, **{"device": "cuda:0", "arch": "sm_90a", "multiprocessors": 4, **more})


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    yield FakeDriver(monkeypatch, multiprocessors=4, per_multiprocessor=2)
    gc.collect()  # memory of the device goes back to the driver that gave it


@needs_compiler
def test_a_variant_is_judged_and_then_timed_on_whole_sizes(card: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "elapsed_ms", lambda first, last: 0.1)
    problem = on_card(STAGED, {"N": 400}, {"X": "iota"}, repeat=5, small={"N": 80}, seconds=100.0)
    row = judge(problem, Task(Variant((("TILE", 8),), per_sm=1)))
    assert (row.status, row.why, row.grid, row.repeats, row.ctas_per_sm) == ("ok", "", (4, 1, 1), 5, 2)
    assert row.elapsed_ms == pytest.approx(0.05)  # two launches between two events of 0.1 ms
    assert {grid for _, grid, _ in card.launches} == {(4, 1, 1)} and all(c for *_, c in card.launches)
    assert judge(problem, Task(Variant((("TILE", 8),)))).grid == (8, 1, 1)


@needs_compiler
def test_each_time_begins_with_what_was_given(card: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = on_card(SCALE.replace("* alpha", "* alpha + Y[at :+ TILE]"), {"N": 40}, {"X": "ones", "Y": "zeros",
                      "alpha": "1"})  # fmt: skip
    kernel, y = problem.made(), np.zeros(40, np.float32)
    bound = kernel.bound((np.ones(40, np.float32), y, 1.0), {}, {})
    seen: list[float] = []
    launched = driver.launch_graph

    def launch(graph: int, stream: int) -> None:
        launched(graph, stream)
        seen.append(float(np.frombuffer(card.memory[1], np.float32, 40)[0]))  # X, Y, and what Y was

    monkeypatch.setattr(driver, "launch_graph", launch)
    assert len(list(Device("cuda:0").times(kernel, bound, LaunchOptions(), 3))) == 3
    assert seen == [1.0] * 5 and not y.any()


@needs_compiler
def test_a_wrong_result_on_a_card_is_a_row(card: FakeDriver) -> None:
    problem = on_card(SCALE, {"N": 100}, {"X": "iota", "Y": "zeros", "alpha": "3"})
    row = judge(problem, Task(Variant((("TILE", 8),))), Miscompiled(Device("cuda:0")))
    assert row.status == "wrong" and row.why == "Y[99] is 298, the reference has 297 at N=100"


def test_variants_are_compiled_where_there_is_no_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from phobos.codegen import cache

    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path))
    problem = on_card(SCALE, {"N": 1 << 20}, {"X": "iota", "Y": "zeros", "alpha": "2"}, small={"N": 1024})
    made = ahead(problem, Variant((("TILE", 64),)))
    assert isinstance(made, Ahead) and made.ctas_per_sm == 8 and made.registers > 0
    assert cache.kept().files == 3  # the text, the cubin, and what the checker said


def test_what_cannot_be_compiled_is_a_row() -> None:
    large = """
@autotune(S in [64, 512])
kernel k(X: tensor<f32>[N, N]) {
  var t: tile<f32>[S, S] = 0.0
  t = transpose(X[0 :+ S, 0 :+ S])
  X[0 :+ S, 0 :+ S] = t
}
"""
    row = ahead(on_card(large, {"N": 512}, {"X": "ones"}), Variant((("S", 512),)))
    assert isinstance(row, Row) and row.status == "refused" and "shared memory" in row.why


@needs_compiler
@pytest.mark.parametrize(
    ("variant", "workers"),
    [
        (Variant((("T", 4),)), 12 * 20),
        (Variant((("T", 4),), "persistent-blocked", per_sm=1), 4),
        (Variant((("T", 8),), "persistent-interleaved", 3), 8),
        (Variant((("T", 4),), None, 3), 12 * 20),
    ],
)
def test_what_was_compiled_ahead_is_what_is_launched(
    card: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: Variant, workers: int
) -> None:
    from phobos.codegen import cache

    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path))
    problem = on_card(ROWS, {"M": 48, "N": 80}, {"X": "iota", "Y": "zeros"}, small={"M": 16, "N": 32}, repeat=1)
    assert isinstance(ahead(problem, variant), Ahead)
    before = cache.kept().files
    kernel = problem.made()
    bound = bound_at(problem, kernel, variant, problem.dims)
    plan = host_runs.plan(kernel, bound, options_of(problem, variant, bound), "cuda:0")
    assert cache.kept().files == before
    assert (plan.schedule, plan.l2_group) == (variant.schedule or "flat", variant.l2_group)
    assert plan.workers == workers
    assert judge(problem, Task(variant)).status == "ok"


@needs_compiler
@pytest.mark.parametrize("variant", [
    Variant((("T", 8),)), Variant((("T", 4),), None, 8), Variant((("T", 8),), "persistent-interleaved", 4),
])  # fmt: skip
def test_what_is_lent_is_all_that_a_judge_compiles(
    card: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: Variant
) -> None:
    """The small sizes have so few blocks along x that a group changes nothing: another code than at the whole."""
    from phobos.codegen import cache, nvrtc
    from phobos.runtime.cuda import loading

    monkeypatch.setattr(cache, "_lent", {})
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "here"))
    small = {"M": 16, "N": 16}
    problem = on_card(ROWS, {"M": 48, "N": 80}, {"X": "iota", "Y": "zeros"}, small=small, repeat=1)
    made = ahead(problem, variant)
    assert isinstance(made, Ahead)
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "there"))  # another machine

    def refuses(*given: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr(nvrtc, "compile_text", refuses)
    assert judge(problem, Task(variant, None, made.lent)).status == "ok"
    cache._lent.clear()
    loading._loaded.clear()
    with pytest.raises(AssertionError, match="compiled again"):
        judge(problem, Task(variant))

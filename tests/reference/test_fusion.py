"""Fusions in the reference runtime: the results of their kernels one after another, and races without a barrier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phobos
from phobos.runtime.judge import Judging, judge, prepare
from phobos.runtime.kernel import Kernels
from phobos.runtime.options import LaunchOptions
from phobos.runtime.reference.execute import Options, execute_phases
from phobos.runtime.reference.faults import Fault
from tests.fusions import CHAIN, SOFTMAX, copies, fusion_of, given_to, one_after_another

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

ATOMIC = """
kernel count(X: tensor<f32>[N], C: tensor<i32>[8]) {
    let p = ctx.block.x
    let x = X[p]
    if x > 0.5 { atomic_add(C, p % 8, 1) }
    X[p] = 0.0
}
kernel reset(C: tensor<i32>[8], U: tensor<i32>[8]) {
    let p = ctx.block.x
    U[p] = C[p]
    C[p] = 0
}
"""


def arrays(n: int, *names: str) -> dict[str, Any]:
    made = {name: np.full(n, np.nan, np.float32) for name in names}
    made["X"] = np.random.default_rng(3).standard_normal(n).astype(np.float32)
    return made


def ran(kernel: phobos.Kernel, arrays: dict[str, Any]) -> None:
    kernel(**given_to(kernel, arrays))


@pytest.mark.parametrize("names", ["double+triple", "double+add", "double+triple+add+both", "double+back+triple"])
@pytest.mark.parametrize("how", [{}, {"grid": 1}, {"grid": 3}, {"schedule": "persistent-blocked"}, {"resident": 50}])
@pytest.mark.parametrize("n", [1, 64, 1000])
def test_a_fusion_is_its_kernels_one_after_another(names: str, how: dict[str, Any], n: int) -> None:
    fused = fusion_of(CHAIN, names)
    if "grid" in how and len(fused.analysed()[1].program.fusion.phases) == 1:
        how = {**how, "schedule": "persistent-interleaved"}
    given = given_to(fused, arrays(n, "Y", "Z", "W", "R"))
    expected = one_after_another(ran, CHAIN, names, copies(given))
    for scheduler in (None, "round-robin", "random", "adversarial"):
        held = copies(given)
        fused.reference(**held, **how, detect="races", scheduler=scheduler, seed=5)
        for name in given:
            assert held[name].tobytes() == expected[name].tobytes(), (name, scheduler)


@pytest.mark.parametrize("schedule", ["persistent-blocked", "persistent_interleaved"])
def test_softmax_over_three_kernels(schedule: str) -> None:
    x = np.random.default_rng(0).standard_normal((9, 192)).astype(np.float32)
    held = {
        "X": x, "M": np.zeros((9, 1), np.float32), "S": np.zeros((9, 1), np.float32), "Y": np.zeros_like(x)
    }  # fmt: skip
    expected = one_after_another(ran, SOFTMAX, "largest+total+divide", copies(held))
    fused = fusion_of(SOFTMAX, "largest+total+divide")
    plan = fused.plan(**held, schedule=schedule)
    assert [[kernel for kernel, _ in phase.kernels] for phase in plan.phases] == [["largest"], ["total"], ["divide"]]
    assert plan.phases[2].kernels == (("divide", (3, 9, 1)),)
    fused.reference(**held, schedule=schedule, detect="races")
    for name, array in held.items():
        assert array.tobytes() == expected[name].tobytes()
    np.testing.assert_allclose(held["Y"].sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("scheduler", [None, "random", "adversarial"])
@pytest.mark.parametrize(("text", "names", "n"), [(CHAIN, "double+add", 256), (ATOMIC, "count+reset", 24)])
def test_without_its_barrier_a_fusion_races(text: str, names: str, n: int, scheduler: str | None) -> None:
    """The barrier is needed: the same kernels side by side are caught, and with it nothing is."""
    fused = fusion_of(text, names)
    held: dict[str, Any] = arrays(n, "Y", "Z")
    held |= {"C": np.zeros(8, np.int32), "U": np.zeros(8, np.int32)}
    held = given_to(fused, held)
    bound = fused.bound((), held, {})
    prepared = prepare(fused, bound, (), held, LaunchOptions())
    judge(prepared, Judging("races", scheduler, 1))
    assert len(prepared.phases) == 2
    together = tuple(kernel for phase in prepared.phases for kernel in phase)
    prepared.arrays["X"][...] = 1
    how = Options(races=True, scheduler=scheduler, seed=1)
    with pytest.raises(Fault) as caught:
        execute_phases((together,), prepared.arrays, {}, bound.dims, how)
    assert caught.value.kind == "race"
    first, second = names.split("+")
    assert f"of `{first}`" in caught.value.notes[-1] and f"of `{second}`" in caught.value.notes[-1]
    blocks = [grid[0] for _, grid in together]
    low, high = caught.value.blocks
    assert low < blocks[0] <= high < sum(blocks)  # one of either kernel


def test_a_race_inside_one_kernel_of_a_fusion_is_found() -> None:
    text = (
        CHAIN
        + """
kernel wild(X: tensor<f32>[N], V: tensor<f32>[N]) {
    let p = ctx.block.x
    V[p * 64 :+ 64] = 0.0
    V[0 :+ 1] = X[p :+ 1]
}
"""
    )
    fused = fusion_of(text, "double+wild")
    with pytest.raises(phobos.KernelFault, match="different values to V"):
        fused.reference(**arrays(256, "Y", "V"), detect="races")


def test_what_was_told_to_be_independent_is_still_watched() -> None:
    text = """
kernel fill(Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 8 :+ 8] = 1.0
}
kernel pick(I: tensor<i32>[N], Y: tensor<f32>[N], V: tensor<f32>[N]) {
    let p = ctx.block.x
    let i = I[p]
    V[p] = Y[i]
}
"""
    held: dict[str, Any] = {"Y": np.zeros(16, np.float32), "I": np.zeros(16, np.int32), "V": np.zeros(16, np.float32)}
    with pytest.raises(phobos.KernelFault) as caught:
        fusion_of(text, "fill+pick", "independent").reference(**held, detect="races")
    assert caught.value.kind == "race"
    fusion_of(text, "fill+pick", "barrier").reference(**held, detect="races")
    assert (held["V"] == 1).all()
    with pytest.raises(phobos.CheckError, match="whether `pick` must wait for `fill` is not known"):
        fusion_of(text, "fill+pick")


# --- the plan -----------------------------------------------------------------------------------------------


def test_the_plan_says_why() -> None:
    fused = fusion_of(CHAIN, "double+triple+add+both")
    plan = fused.plan(**arrays(1000, "Y", "Z", "W", "R"), resident=12)
    assert plan.grid == (12, 1, 1) and plan.schedule == "persistent-interleaved"
    assert [phase.blocks for phase in plan.phases] == [16 + 32, 8, 16]
    text = str(plan)
    assert "`triple` need not wait for `double`: both only read `X`" in text
    assert "before phase 2: `add` reads `Y` (line 8), which `double` writes (line 4): both touch Y[" in text
    assert plan.as_dict()["phases"][0]["kernels"][1] == {"kernel": "triple", "grid": [32, 1, 1]}
    few = fused.plan(**arrays(100, "Y", "Z", "W", "R"), resident=12)
    assert few.grid == (6, 1, 1) and "the blocks of its largest phase" in few.grid_source


def test_kernels_with_no_barrier_are_launched_as_they_are() -> None:
    fused = fusion_of(CHAIN, "double+triple")
    plan = fused.plan(**arrays(1000, "Y", "W"))
    assert plan.schedule == "flat" and plan.grid == (48, 1, 1)
    plan = fused.plan(**arrays(1000, "Y", "W"), schedule="persistent-blocked", resident=7)
    assert plan.schedule == "persistent-blocked" and plan.grid == (7, 1, 1)


@pytest.mark.parametrize(
    ("names", "how", "said"),
    [
        ("double+add", {"schedule": "flat"}, "has no grid barrier, but these kernels need 1 between them"),
        ("double+triple", {"grid": 4}, "under schedule 'flat' the grid of a fusion follows from its kernels"),
        ("double+add", {"grid": (2, 2)}, "counted along one dimension, not 2 x 2 x 1"),
        ("double+add", {"grid": 9, "resident": 8}, "a grid of 9 workers is not resident: 8 fit at once"),
        ("double+add", {"schedule": "sideways"}, "no schedule is called 'sideways'"),
        ("double+triple", {"schedule": "xyz"}, "launches the grid of one kernel, these are 2"),
    ],
)
def test_launches_that_are_refused(names: str, how: dict[str, Any], said: str) -> None:
    fused = fusion_of(CHAIN, names)
    held = given_to(fused, arrays(256, "Y", "Z", "W"))
    with pytest.raises(phobos.LaunchError, match=said):
        fused.plan(**held, **how)


@pytest.mark.parametrize("names", ["shifted+doubled", "doubled+shifted"])
def test_of_what_the_kernels_ask_of_two_arrays_the_strictest_counts(names: str) -> None:
    text = """
kernel shifted(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  Y[ctx.block.x * 8 :+ 8] = X[ctx.block.x * 8 + 1 :+ 8]
}
kernel doubled(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  Y[ctx.block.x * 8 :+ 8] = Y[ctx.block.x * 8 :+ 8] + X[ctx.block.x * 8 :+ 8]
}
"""
    x = np.zeros(64, np.float32)
    phobos.kernel(text, "doubled").plan(x, x)
    with pytest.raises(phobos.LaunchError, match="`Y` and `X` share memory"):
        phobos.kernel(text, names).plan(x, x)


def test_arrays_that_no_barrier_orders_must_lie_apart() -> None:
    held = arrays(256, "Y", "W")
    held["W"] = held["Y"]
    with pytest.raises(phobos.LaunchError, match="`Y` and `W` share memory"):
        fusion_of(CHAIN, "double+triple").plan(**held)
    held = arrays(256, "Y", "Z")
    held["Z"] = held["X"]  # `add` runs behind a barrier, and may write what `double` has read
    fusion_of(CHAIN, "double+add").plan(**held)


def test_extents_agree_over_all_kernels() -> None:
    held = arrays(256, "Y", "Z")
    held["Z"] = np.zeros(255, np.float32)
    with pytest.raises(phobos.LaunchError, match="`N` is 256"):
        fusion_of(CHAIN, "double+add").plan(**held)


def test_nothing_to_do() -> None:
    held = arrays(0, "Y", "Z")
    fusion_of(CHAIN, "double+add").reference(**held, detect="races")


# --- fuse ---------------------------------------------------------------------------------------------------


def test_what_cannot_be_fused() -> None:
    kernels = Kernels("<text>", CHAIN)
    with pytest.raises(phobos.LaunchError, match="nothing to fuse"):
        phobos.fuse()
    with pytest.raises(phobos.LaunchError, match="is no kernel"):
        phobos.fuse(kernels.double, "add")  # type: ignore[arg-type]
    with pytest.raises(phobos.LaunchError, match="not of one file"):
        phobos.fuse(kernels.double, phobos.load(EXAMPLES / "saxpy.ph").saxpy)
    with pytest.raises(phobos.LaunchError, match="two of the texts define `add`"):
        phobos.fuse(kernels.double, phobos.kernel(CHAIN + "// another\n", "add"))
    with pytest.raises(phobos.LaunchError, match="no order is called 'maybe'"):
        phobos.fuse(kernels.double, kernels.add, order="maybe")
    assert phobos.fuse(kernels.double).name == "double"


def test_kernels_of_two_texts() -> None:
    one = phobos.kernel("kernel one(X: tensor<f32>[N], Y: tensor<f32>[N]) { Y[ctx.block.x] = X[ctx.block.x] * 2.0 }")
    two = phobos.kernel("kernel two(Y: tensor<f32>[N], Z: tensor<f32>[N]) { Z[ctx.block.x] = Y[ctx.block.x] + 1.0 }")
    held = arrays(10, "Y", "Z")
    plan = phobos.fuse(one, two).plan(**held)
    assert len(plan.phases) == 2 and "(line 3)" in plan.phases[1].waits[0]
    phobos.fuse(one, two)(**held)
    np.testing.assert_array_equal(held["Z"], held["X"] * 2 + 1)


def test_a_fusion_of_kernels_that_do_not_agree() -> None:
    text = (
        CHAIN
        + """
kernel halves(X: tensor<f16>[N], H: tensor<f16>[N]) {
    let p = ctx.block.x
    H[p * 64 :+ 64] = X[p * 64 :+ 64]
}
"""
    )
    with pytest.raises(phobos.CheckError, match="`X` is not one tensor in `double` and `halves`") as caught:
        fusion_of(text, "double+halves")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "PH104" and len(diagnostic.related) == 1


def test_constants_are_one_in_all_kernels() -> None:
    text = """
@autotune(T in [32, 64])
kernel a(X: tensor<f32>[N], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * T :+ T] = X[p * T :+ T] + 1.0
}
@autotune(T in [32, 64])
kernel b(Y: tensor<f32>[N], Z: tensor<f32>[N]) {
    let p = ctx.block.x
    Z[p * T :+ T] = Y[p * T :+ T] + 1.0
}
"""
    fused = fusion_of(text, "a+b")
    held = arrays(256, "Y", "Z")
    assert [phase.blocks for phase in fused.plan(**held).phases] == [8, 8]
    plan = fused.plan(**held, constants={"T": 64})
    assert [phase.blocks for phase in plan.phases] == [4, 4] and plan.constants == {"T": 64}
    with pytest.raises(phobos.LaunchError, match="has no constant `Q`"):
        fused.plan(**held, constants={"Q": 64})
    fused(**held)
    np.testing.assert_array_equal(held["Z"], held["X"] + 1 + 1)


def test_workers_by_the_configured_target(tmp_path: Any) -> None:
    (tmp_path / "phobos.toml").write_text('target = ["t4"]\n')
    file = tmp_path / "t.ph"
    file.write_text(SOFTMAX)
    kernels = phobos.load(file)
    fused = phobos.fuse(kernels.largest, kernels.total, kernels.divide)
    held = {"X": np.zeros((900, 64), np.float32), "M": np.zeros((900, 1), np.float32)}
    held |= {"S": np.zeros((900, 1), np.float32), "Y": np.zeros((900, 64), np.float32)}
    plan = fused.plan(**held)
    assert plan.grid == (40 * 4, 1, 1) and "what t4 holds" in plan.grid_source

"""What a kernel needs to be true, and who has to see to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from phobos.semantics.module import analyse
from phobos.semantics.obligations import launch_obligations_of, obligations_of

from .cases import program

STATES = {"proved", "refuted", "launch", "device", "doubtful"}


def states(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for obligation in obligations_of(program(text)):
        found.setdefault(obligation.kind, []).append(obligation.state)
    return found


def test_a_good_persistent_kernel() -> None:
    assert states("""@persistent
@aligned(N = 64)
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    Y[t :+ 64] = X[t :+ 64]
  }
  grid_barrier(BAR)
  X[ctx.block.x] = 1.0
}
""") == {
        "one-dimensional-grid": ["launch"],
        "resident": ["launch"],
        "same-barriers": ["proved"],
        "barrier-tensor": ["launch"],
        "aligned": ["launch"],
        "no-overlap": ["launch"],
        "grid-at-most": ["launch"],
        "extent-agrees": ["launch"],
        "index-fits": ["proved"],
    }


def test_a_bad_one() -> None:
    found = states("""kernel k(X: tensor<f32>[N], BAR: tensor<i32>[1], C: tensor<i32>[4]) {
  let p = ctx.block.x
  let _q = ctx.block.y
  BAR[0] = 0
  if p == 0 {
    grid_barrier(BAR)
  }
  if C[p] > 0 {
    grid_barrier(BAR)
  }
  X[0 :+ 2] = X[p * 2 :+ 2]
}
""")
    assert found["one-dimensional-grid"] == ["refuted"]
    assert found["resident"] == ["refuted"]
    assert found["same-barriers"] == ["refuted", "doubtful"]
    assert found["barrier-tensor"] == ["refuted"]
    assert "refuted" in found["no-overlap"]


def test_promises_about_constants_are_decided() -> None:
    text = "@autotune(N in [{}])\n@aligned(N = 64)\nkernel k(X: tensor<f32>[N]) {{\n  X[0] = 1.0\n}}\n"
    assert states(text.format(128))["aligned"] == ["proved"]
    assert states(text.format(100))["aligned"] == ["refuted"]


def test_indices_are_left_to_the_device_where_nobody_knows() -> None:
    found = states("""kernel k(X: tensor<f32>[N], C: tensor<i32>[K], n: i32) {
  X[n] = 1.0
  let old = atomic_add(C, n, 1)
  let other = atomic_add(C, n % K, 1)
}
""")
    assert found["index-fits"] == ["device", "device", "device"]


def test_one_array_for_two_names_is_fine_where_cells_stay_with_their_block() -> None:
    text = """@persistent
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], Z: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = Y[t :+ 64] + Z[t + 1 :+ 64]
  }
}
"""
    found = {
        tuple(tensor.name for tensor in o.subject): o.same_array_ok  # type: ignore[attr-defined]
        for o in obligations_of(program(text))
        if o.kind == "no-overlap"
    }
    assert found == {("X", "Y"): True, ("X", "Z"): False}


def test_masks_that_trust_the_grid_bind_the_launch() -> None:
    text = "@aligned(N = 64)\nkernel k(X: tensor<f32>[N]) {\n  X[ctx.block.x * 64 :+ 64] = 1.0\n}\n"
    (limit,) = (o for o in obligations_of(program(text)) if o.kind == "grid-at-most")
    assert limit.state == "launch" and limit.bound is not None


@pytest.mark.parametrize("path", sorted(Path("tests/corpus").glob("*.ph")), ids=lambda path: path.stem)
def test_nothing_of_a_correct_kernel_is_refuted(path: Path) -> None:
    for unit in analyse(path.name, path.read_text()).kernels.values():
        obligations = obligations_of(unit.program)
        assert obligations and {o.state for o in obligations} <= STATES
        assert [o.reason for o in obligations if o.state == "refuted"] == []


@pytest.mark.parametrize("paths", ["tests/corpus/*.ph", "examples/*.ph"])
def test_what_is_left_to_the_launch_is_known_without_the_rest(paths: str) -> None:
    kinds = set()
    for path in sorted(Path().glob(paths)):
        for unit in analyse(path.name, path.read_text()).kernels.values():
            left = launch_obligations_of(unit.program)
            assert left == tuple(o for o in obligations_of(unit.program) if o.state == "launch")
            kinds |= {o.kind for o in left}
    if "corpus" in paths:
        assert {"resident", "no-overlap", "barrier-tensor", "grid-at-most", "aligned", "extent-agrees"} <= kinds


def test_steps_and_divisors_that_nothing_proves_are_left_to_the_device() -> None:
    text = """kernel k(X: tensor<f32>[N], n: i32) {{
  for i in range(0, N, {step}) {{
    X[i / {divisor}] = 1.0
  }}
}}
"""
    left = states(text.format(step="n", divisor="(N - 3)"))
    assert left["positive-step"] == left["nonzero-divisor"] == ["device"]
    sound = states(text.format(step="ctx.blocks.x", divisor="(ctx.block.x + 1)"))
    assert "positive-step" not in sound and "nonzero-divisor" not in sound

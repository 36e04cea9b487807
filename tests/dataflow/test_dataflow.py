"""A few seeds of every run; and that what goes wrong is told: waits left out, stores outside, passes that raise."""

from __future__ import annotations

import ctypes
import os
import signal
from dataclasses import replace

import pytest

from phobos.codegen.emitted import Emitted
from phobos.codegen.work import emit
from phobos.lowering import hazards
from phobos.lowering.decide import Lowered
from phobos.value import replace as changed
from tests.codegen import host
from tests.dataflow import check
from tests.dataflow.generator import generate
from tests.dataflow.run import run
from tests.dataflow.sample import Sample
from tests.dataflow.shrink import shrunk

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

SHIFT = """\
@launch(64)
kernel k(X_f32: tensor<f32>[N], Y: tensor<f32>[64]) {
  for i in range(0, 3) {
    X_f32[64 :+ 64] = X_f32[63 :+ 64]
  }
  Y[0 :+ 64] = 1.0
}
"""
FILL = """\
kernel k(X_f32: tensor<f32>[N]) {
  X_f32[ctx.block.x * 64 :+ 64] = 1.0
}
"""


def sample(text: str, n: int) -> Sample:
    return replace(generate(0), text=text, sizes={"N": n}, grid=1, workers=0, special=False)


def test_seeds_agree() -> None:
    wrong, sums = run(500_000, 12)
    assert not wrong and sums["agree"] >= 11, sums


def test_the_same_seed_gives_the_same_kernel_and_cells() -> None:
    one, other = generate(77), generate(77)
    assert one == other
    assert one.array("X_f32", "f32", (9,)).tobytes() == other.array("X_f32", "f32", (9,)).tobytes()


def test_a_missing_wait_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not check.wrong_with(sample(SHIFT, 128))
    monkeypatch.setattr(hazards._Pass, "conflict", lambda self, touches, pending: None)
    said = check.wrong_with(sample(SHIFT, 128))
    assert said.startswith("X_f32[")
    small = shrunk(sample(SHIFT, 128), said, 20.0).text
    assert "Y" not in small and "for" not in small and "X_f32[64 :+ 64] = X_f32[63 :+ 64]" in small


def test_a_store_outside_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unmasked(lowered: Lowered, *rest: object) -> Emitted:
        return emit(changed(lowered, masks={}), *rest)  # type: ignore[arg-type]

    assert not check.wrong_with(sample(FILL, 50))
    monkeypatch.setattr(check, "emit", unmasked)
    assert "X_f32: stored outside" in check.wrong_with(sample(FILL, 50))


def test_a_pass_that_raises_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> None:
        raise KeyError("a layout")

    monkeypatch.setattr(check, "lower", fails)
    assert check.wrong_with(sample(FILL, 64)) == "raises KeyError: 'a layout'"


def test_one_that_takes_long_is_left_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is it called wrong, nor the one behind it; one that the machine stops is."""
    made = check.prepared(sample(FILL, 64))
    assert isinstance(made, check.Made)
    real = check.difference

    def difference(one: check.Made, whole: ctypes.CDLL, number: int, order: int) -> str:
        while number == 0:
            pass
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(one, whole, number, order)

    monkeypatch.setattr(check, "difference", difference)
    monkeypatch.setattr(check, "SLOW_SECONDS", 0.3)
    assert [said for _, said in check.differences([made] * 4)] == ["", "", check.STOPPED, ""]

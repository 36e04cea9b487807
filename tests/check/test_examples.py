"""Races that no arithmetic finds are shown by a small launch, and what atomics order there is none."""

from __future__ import annotations

import pytest

from phobos.check import findings
from phobos.check.configuration import DEFAULT
from phobos.diagnostic import Diagnostic
from phobos.semantics import examples, rehearsed_launch
from phobos.semantics.rehearsed_launch import Launch, Seen

HEAD = "@persistent\nkernel k(X: tensor<f32>[N], C: tensor<i32>[2], P: tensor<f32>[S]) {\n  let p = ctx.block.x\n"
FIXED = "@autotune(N in [8])\n"


def of_races(text: str) -> list[Diagnostic]:
    found = findings("k.ph", text, DEFAULT)
    assert not [d for d in found if d.code[2] in "014" and d.severity == "error"], "it is a kernel"
    return [d for d in found if d.code in ("PH501", "PH502", "PH503", "PH506", "PH507")]


SHOWN: dict[str, tuple[str, set[tuple[str, str]]]] = {  # text, and what is said of it
    "only a block beyond the extent comes around to the first cell": (
        FIXED + HEAD + "  if p == 0 {\n    X[0] = X[p % N] + f32(p)\n  } else {\n    P[p] = X[p % N]\n  }\n}\n",
        {("PH501", "error")},
    ),
    "tickets are walked on from": (
        HEAD
        + "  var i = i64(atomic_add(C, 0, 1))\n  while i < N {\n    X[i] = X[i] * 2.0\n    i = i + 1\n  }\n}\n",
        {("PH501", "warning")},
    ),
    "the first to come reads what the others write": (
        HEAD + "  P[p] = f32(p)\n  if atomic_add(C, 0, 1) == 0 {\n    X[0] = P[0] + P[1]\n  }\n}\n",
        {("PH501", "warning")},
    ),
    "nobody asks what the atomic between answers": (
        HEAD + "  P[p] = f32(p)\n  atomic_add(C, 0, 1)\n  if p > 0 {\n    X[p] = P[p - 1]\n  }\n}\n",
        {("PH501", "error")},
    ),
    "a flag that is raised too early": (
        HEAD
        + "  if p == 0 {\n    atomic_add(C, 0, 1)\n    X[0] = 3.0\n  }\n  while atomic_add(C, 0, 0) == 0 {\n  }\n"
        + "  P[p] = X[0]\n}\n",
        {("PH501", "warning")},
    ),
}

NOT_SHOWN: dict[str, str] = {  # right, if the counter begins at 0
    "the last to come reads what the others wrote": HEAD
    + "  P[p] = f32(p)\n  if i64(atomic_add(C, 0, 1)) == ctx.blocks.x - 1 {\n    X[0] = P[0]\n  }\n}\n",
    "a flag that is raised in time": HEAD
    + "  if p == 0 {\n    X[0] = 3.0\n    atomic_add(C, 0, 1)\n  }\n  while atomic_add(C, 0, 0) == 0 {\n  }\n"
    + "  P[p] = X[0]\n}\n",
    "the one before has raised its own": HEAD
    + "  while i64(atomic_add(C, 0, 0)) < p {\n  }\n"
    + "  if p > 0 {\n    P[p] = P[p - 1] + 1.0\n  }\n  atomic_add(C, 0, 1)\n}\n",
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_launch_shows_the_race(name: str) -> None:
    text, said = SHOWN[name]
    found = of_races(text)
    assert said <= {(d.code, d.severity) for d in found} <= {*said, ("PH506", "info")}
    assert all(any("for example with" in note for note in d.notes) for d in found if d.code == "PH501")


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_what_atomics_order_is_no_race(name: str) -> None:
    assert {d.code for d in of_races(NOT_SHOWN[name])} <= {"PH506"}


def test_without_the_clocks_the_right_ones_are_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsed_launch, "ordered", lambda *_: False)
    for text in NOT_SHOWN.values():
        assert "PH501" in {d.code for d in of_races(text.replace("kernel k", "kernel other"))}


def test_a_launch_that_would_be_refused_is_no_example() -> None:
    """Only the largest grid that is tried has a block that comes around, and there something else is wrong."""
    text, _ = SHOWN["only a block beyond the extent comes around to the first cell"]
    wrong = text.replace("  if p == 0", "  P[p] = f32(7 / (ctx.blocks.x - 12))\n  if p == 0")
    assert {d.code for d in of_races(wrong) if "`X`" in d.message} == {"PH506"}


def test_only_so_many_launches_are_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    carried = 0

    def run(self: Launch, last_first: bool, whole=Launch.run) -> Seen:
        nonlocal carried
        carried += 1
        return whole(self, last_first)

    monkeypatch.setattr(Launch, "run", run)
    of_races(NOT_SHOWN["the one before has raised its own"].replace("kernel k", "kernel counted"))
    assert 3 <= carried <= examples.MOST_LAUNCHES

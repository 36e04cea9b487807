"""A short run of the fuzzer, and its teeth."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from tests.fuzz import run, stages
from tests.fuzz.inputs import text_of
from tests.fuzz.stages import STAGES, limit, tried


@pytest.mark.filterwarnings("ignore")
def test_three_hundred_inputs_raise_nothing() -> None:
    found = [tried(seed) for seed in range(300)]
    assert not [f"seed {one.seed}: {one.wrong}" for one in found if one.wrong]
    reached = Counter(stage for one in found for stage in one.stages)
    assert not run.complaints(len(found), reached, Counter())
    assert all(reached[stage] > 15 for stage in STAGES), reached


def test_a_seed_is_its_text() -> None:
    assert text_of(11) == text_of(11) and len({text_of(seed) for seed in range(50)}) > 45


def test_a_defect_is_named_with_its_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> list[object]:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(stages, "check", broken)
    found = [tried(seed) for seed in range(5)]
    assert all("ZeroDivisionError: planted" in one.wrong for one in found)


def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(stages.TooLong), limit(0.05):
        time.sleep(5)


def test_a_run_that_is_too_tame_fails() -> None:
    assert run.complaints(10, Counter(parsed=4), Counter())
    assert any("never raised" in said for said in run.complaints(run.MANY, Counter(parsed=run.MANY), Counter()))

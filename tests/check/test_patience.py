"""The collector's threshold is raised while a file is checked, and is what it was afterwards, whatever happens."""

from __future__ import annotations

import gc
import threading

import pytest

import phobos
from phobos.check import engine
from phobos.check.patience import ALLOCATIONS, patient_collector


def test_it_is_raised_inside_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    seen: list[int] = []

    def broken(*_: object) -> None:
        seen.append(gc.get_threshold()[0])
        raise ZeroDivisionError

    monkeypatch.setattr(engine, "findings_of", broken)
    with pytest.raises(ZeroDivisionError):
        phobos.check("kernel k() {}")
    assert seen == [max(before[0], ALLOCATIONS)] and gc.get_threshold() == before


def test_threads_that_overlap_leave_it_as_it_was() -> None:
    before = gc.get_threshold()
    first_in, second_in = threading.Event(), threading.Event()

    def first() -> None:
        with patient_collector():
            first_in.set()
            second_in.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    first_in.wait(10)
    with patient_collector():
        second_in.set()
        thread.join()
        assert gc.get_threshold()[0] >= ALLOCATIONS
    assert gc.get_threshold() == before


def test_a_collector_that_is_off_stays_off() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with patient_collector():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)

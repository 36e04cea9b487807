"""The server looks for garbage when nobody waits: young objects after findings, everything in a pause."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from phobos.lsp import collecting
from phobos.lsp.collecting import Collector


class Circle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


def test_what_is_young_goes_after_findings_and_what_is_old_in_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "WORTH_IT", 1)

    async def session() -> None:
        loop = asyncio.get_running_loop()
        collector = Collector()
        collector.start()
        circle = Circle()
        gc.freeze()  # as after a look: what is there is set aside
        old = weakref.ref(circle)
        circle = Circle()
        young = weakref.ref(circle)
        del circle
        assert young() is not None and old() is not None
        collector.rested()
        while young() is not None:
            await asyncio.sleep(0.001)
        assert old() is not None
        collector.touched()
        collector.touched()
        first = collector._waiting
        assert first is not None
        collector._pause()  # a message has only just come: it waits on
        assert old() is not None and collector._waiting is not first
        collector._last = loop.time() - 2 * collecting.PAUSE_SECONDS
        collector._pause()
        assert old() is None and collector._waiting is None

    asyncio.run(asyncio.wait_for(session(), 20))


def test_without_a_pause_garbage_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "MOST_ASIDE", 3_000)

    async def session() -> None:
        collector = Collector()
        collector.start()
        first = None
        kept: list[list[Circle]] = []
        for number in range(12):
            circle = Circle()
            first = first or weakref.ref(circle)
            kept.append([Circle() for _ in range(500)])  # survives its first look, as facts of an edit do
            collector.rested()
            await asyncio.sleep(0.005)
            if number >= 1:
                kept[number - 1].clear()
        assert first is not None and first() is None
        assert sum(isinstance(o, Circle) for o in gc.get_objects()) < 6_000

    asyncio.run(session())


def test_the_collector_does_not_run_by_itself_while_a_kernel_is_analysed() -> None:
    from phobos.check import findings

    Collector().start()
    looks: list[int] = []

    def looked(phase: str, info: dict[str, int]) -> None:
        looks.append(info["generation"])

    gc.callbacks.append(looked)
    try:
        findings("gemm.ph", Path("examples/gemm.ph").read_text(encoding="utf-8"))
    finally:
        gc.callbacks.remove(looked)
    assert looks == []

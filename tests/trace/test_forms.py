"""What becomes of a trace: a file that viewers open, a drawing, JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

import phobos
from phobos.errors import InputError
from phobos.runtime.tracing import chrome
from phobos.runtime.tracing.picture import MOST_ROWS
from phobos.runtime.tracing.trace import Trace
from tests.trace.test_steps import ORDINARY, slow

SVG = "{http://www.w3.org/2000/svg}"


def on_two_multiprocessors(made: Trace) -> Trace:
    """As if a card with two had run it."""
    made.processor = numpy.arange(made.blocks) % 2
    return made


def well_formed(events: list[dict[str, Any]]) -> None:
    """The Trace Event Format: what each kind of event must have, and of which type."""
    needed = {
        "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "dur": (int, float), "args": dict},
        "M": {"name": str, "pid": int, "args": dict},
        "C": {"name": str, "pid": int, "ts": (int, float), "args": dict},
    }
    for event in events:
        for key, kind in needed[event["ph"]].items():
            assert isinstance(event[key], kind) and not isinstance(event[key], bool), event  # type: ignore[arg-type]
        assert event.get("dur", 0) >= 0 and event.get("ts", 0) >= 0
        if event["ph"] == "M":
            wanted = "name" if event["name"].endswith("_name") else "sort_index"
            assert ("tid" in event) == event["name"].startswith("thread_")
            assert event["name"] in ("process_name", "thread_name", "process_sort_index", "thread_sort_index")
            assert list(event["args"]) == [wanted]
        if event["ph"] == "C":
            assert all(isinstance(number, int) for number in event["args"].values())


def test_the_file_is_one_that_viewers_open(tmp_path: Path) -> None:
    made = on_two_multiprocessors(slow(2, 4))
    made.save(str(tmp_path / "out.json"))
    read = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert set(read) == {"traceEvents", "displayTimeUnit", "otherData"} and read["displayTimeUnit"] == "ns"
    events = read["traceEvents"]
    well_formed(events)
    names = {(e["name"], e["pid"], e.get("tid")): e["args"].get("name") for e in events if e["ph"] == "M"}
    assert names["process_name", 1, None] == "multiprocessor 1" and names["thread_name", 0, 1001] == "block 2"
    of_2 = [e for e in events if e["ph"] == "X" and e["args"]["block"] == 2]
    assert [e["name"] for e in of_2] == [
        "the start to line 7", "line 7 to line 11", "line 11 to the end",
    ], "it waits for nobody"  # fmt: skip
    assert [e["cat"] for e in of_2] == ["work"] * 3 and of_2[1]["dur"] == made.work[2, 1]
    of_3 = [e for e in events if e["ph"] == "X" and e["args"]["block"] == 3]
    assert [e["cat"] for e in of_3] == ["work", "work", "wait", "work"]
    assert of_3[2]["name"] == "waits, line 11" and of_3[2]["args"]["line"] == 11
    assert {e["args"]["blocks"] for e in events if e["ph"] == "C"} == {8, 0}


def test_nanoseconds_become_microseconds() -> None:
    made = slow(2, 4)
    made.unit = "ns"
    events = [e for e in made.to_chrome()["traceEvents"] if e["ph"] == "X" and e["args"]["block"] == 2]
    assert events[1]["dur"] == made.work[2, 1] / 1000 and events[1]["ts"] == made.left[2, 0] / 1000


def test_blocks_that_follow_each_other_share_a_row() -> None:
    made = phobos.kernel(ORDINARY).trace(numpy.zeros(320, numpy.float32), resident=2)
    events = made.to_chrome()["traceEvents"]
    well_formed(events)
    assert {e["args"]["name"] for e in events if e["name"] == "thread_name"} == {"place 0", "place 1"}
    assert {e["tid"] for e in events if e["ph"] == "X"} == {1000, 1001}


def test_a_file_too_large_for_a_viewer_is_a_choice_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome, "MOST_EVENTS", 6 * 10)
    made = slow(37, 4, blocks=50)
    read = made.to_chrome()
    shown = {e["args"]["block"] for e in read["traceEvents"] if e["ph"] == "X"}
    assert len(shown) == 10 and {0, 37, 49} <= shown
    assert read["otherData"]["not kept"] == ["40 of 50 blocks are left out of this file"]


def test_the_drawing_shows_each_block_and_its_waiting() -> None:
    made = slow(2, 4)
    root = ElementTree.fromstring(made.to_svg())
    words = [one.text or "" for one in root.iter(f"{SVG}text")]
    assert [word for word in words if word.startswith("block")] == [f"block {n}" for n in range(8)]
    assert {"the start to line 7", "line 7 to line 11", "line 11 to the end", "waits"} <= set(words)
    assert any("wait for block 2" in word for word in words)
    boxes = [one for one in root.iter(f"{SVG}rect") if one.find(f"{SVG}title") is not None]
    waits = [one for one in boxes if one.get("class") == "wait"]
    assert len(waits) == 7, "block 2 waits for nobody, and nobody waits for the first barrier"
    left = min(float(one.get("x", "")) for one in boxes)
    width = max(float(one.get("x", "")) + float(one.get("width", "")) for one in boxes) - left
    of_3 = next(one for one in waits if "block 3: waits" in (one.find(f"{SVG}title").text or ""))  # type: ignore[union-attr]
    assert float(of_3.get("width", "")) / width == pytest.approx(made.waits[3, 1] / made.end.max(), abs=0.01)
    assert "prefers-color-scheme:dark" in made.to_svg() == made._repr_svg_()


def test_a_tick_stands_where_its_number_says() -> None:
    text = "kernel k(X: tensor<f32>[N]) {\n  X[ctx.block.x * 256 :+ 256] = X[ctx.block.x * 256 :+ 256] * 2.0\n}\n"
    made = phobos.kernel(text).trace(numpy.zeros(5 * 256, numpy.float32), resident=1)
    root = ElementTree.fromstring(made.to_svg())
    told = [one for one in root.iter(f"{SVG}text") if (one.text or "").split(" ")[-1] in ("step", "steps")]
    times = [int((one.text or "").rpartition(" ")[0].replace(" ", "")) for one in told]
    places = [float(one.get("x", "")) for one in told]
    assert len(times) == 5 and times[-1] == made.end.max() and times[-1] % 4, "else each quarter is a whole number"
    for time, place in zip(times, places, strict=True):
        assert (place - places[0]) / (places[-1] - places[0]) == pytest.approx(time / times[-1], abs=1e-3)


def test_a_drawing_of_many_blocks_has_bounded_rows_and_says_so() -> None:
    made = slow(777, 4, blocks=1500)
    root = ElementTree.fromstring(made.to_svg())
    words = [one.text or "" for one in root.iter(f"{SVG}text")]
    rows = [word for word in words if word.startswith("block ")]
    assert len(rows) == MOST_ROWS and "block 777" in rows
    assert "64 of 1500 blocks are drawn: the slowest, and others at equal distances" in words
    assert float(root.get("height", "")) < 1200


def test_no_folder_to_write_to() -> None:
    with pytest.raises(InputError, match="nowhere"):
        slow(2, 4).save("nowhere/out.json")


def test_the_summary_as_json() -> None:
    read = json.loads(json.dumps(on_two_multiprocessors(slow(3, 4)).as_dict()))
    assert read["unit"] == "steps" and read["blocks"] == 8 and read["barriers_crossed"] == 2
    phase = read["phases"][1]
    assert (phase["slowest"], phase["slowest_at"], phase["line"]) == (3, 1, 11)
    assert read["residency"] == {
        "at_once": 8, "multiprocessors": 2, "per_multiprocessor": [4, 4], "waves": 1, "last_wave": 8
    }  # fmt: skip
    assert read["plan"]["grid"] == [8, 1, 1] and read["cost"] is None

"""`phobos bench`: figures of one shape, compared with the last of this machine; budgets that are missed are said."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import suite  # noqa: E402
from figures import Figure, cells, figure_of, leaves, number  # noqa: E402

from tests.command import Done, phobos  # noqa: E402


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def checkout(folder: Path, **scripts: str) -> Path:
    """A checkout's benchmarks, of which the scripts are these."""
    (folder / "benchmarks").mkdir()
    for name in ("suite.py", "figures.py"):
        shutil.copy(ROOT / "benchmarks" / name, folder / "benchmarks" / name)
    for name, body in scripts.items():
        head = "from figures import Figure, finish\n"
        (folder / "benchmarks" / f"{name}.py").write_text(head + body)
    (folder / "benchmarks" / "RESULTS.md").write_text("# Measured\n\nWords by hand.\n")
    return folder


def bench(folder: Path, *words: str, code: int = 0) -> Done:
    """The command, which looks for the benchmarks of its own checkout, where they are of this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("phobos.cli.bench._folder", lambda: str(folder / "benchmarks"))
        done = phobos("bench", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done


START = 'finish("Start", [Figure("check", {ms}, "ms", target=250), Figure("bare", 12.5, "ms")], {{"python": "3"}})\n'


def test_figures_are_collected_compared_and_judged(tmp_path: Path, cache: Path) -> None:
    folder = checkout(tmp_path, start="print('noise')\n" + START.format(ms=200))
    first = json.loads(bench(folder, "start", "--json").stdout)["parts"]
    assert [part["part"] for part in first] == ["start"] and first[0]["machine"] == {"python": "3"}
    check, bare = first[0]["figures"]
    assert (check["value"], check["target"], check["met"], check["before"]) == (200, 250, True, None)
    assert bare["met"] is None
    assert "every budget that was measured is met" in bench(folder, "start").stdout

    (folder / "benchmarks/start.py").write_text("from figures import Figure, finish\n" + START.format(ms=300))
    shown = bench(folder, "start").stdout
    assert "was 200 (+50 %)" in shown and "12.5 ms" in shown and "as before" in shown
    assert "compared with the run of an unknown day on this machine" in shown
    (kept,) = (cache / "bench").glob("*.json")
    assert f"the next run is compared with these figures, kept in {kept}\n" in shown
    assert first[0]["kept"] == str(kept) and first[0]["before_date"] is None
    assert "budget missed: start: check: 300 ms <= 250" in shown
    bench(folder, "start", "--fail-on-budget", code=1)
    (folder / "benchmarks/start.py").write_text("from figures import Figure, finish\n" + START.format(ms=250))
    bench(folder, "start", "--fail-on-budget")


def test_another_machine_and_a_quick_look_are_compared_with_their_own(tmp_path: Path) -> None:
    folder = checkout(tmp_path, start=START.format(ms=200))
    bench(folder, "start")
    assert "as before" in bench(folder, "start").stdout
    assert "as before" not in bench(folder, "start", "--quick").stdout
    other = START.format(ms=200).replace('"python": "3"', '"python": "4"')
    (folder / "benchmarks/start.py").write_text("from figures import Figure, finish\n" + other)
    assert "as before" not in bench(folder, "start").stdout


def test_a_script_that_fails_is_a_line_and_not_the_end(tmp_path: Path) -> None:
    broken = "import sys\nprint('half a table')\nsys.exit('it broke')\n"
    folder = checkout(tmp_path, start=broken, frontend=START.format(ms=1).replace("Start", "Front end"), lsp="")
    done = bench(folder, "start", "frontend", "lsp", code=2)
    assert "start: FAILED, exit code 1: it broke" in done.stdout and "Front end (python 3)" in done.stdout
    assert "lsp: FAILED, exit code 0: it said nothing" in done.stdout and "Traceback" not in done.stderr


def test_a_script_that_lacks_what_it_measures_with_is_skipped_and_says_why(tmp_path: Path) -> None:
    lacks = "from figures import cannot\ncannot('the headers are not there')\n"
    done = bench(checkout(tmp_path, start=lacks), "start", "--results")
    assert done.stdout == "start: skipped, the headers are not there\n"
    assert (tmp_path / "benchmarks" / "RESULTS.md").read_text() == "# Measured\n\nWords by hand.\n"


def test_parts_that_want_a_card_are_skipped_by_name(tmp_path: Path) -> None:
    (result,) = suite.run(suite.chosen(["gemm"]), quick=True, gpu=(False, "no card"), say=print)
    assert result.skipped == "no card" and suite.text([result]) == "gemm: skipped, no card\n"
    part = suite.Part("x", "x.py", "what nobody has", needs=("no_such_package", "cluster"))
    (result,) = suite.run([part], quick=True, gpu=(True, ""), say=print)
    assert result.skipped == "`no_such_package` is not installed (pip install 'phobos-tools[cluster]')"


def test_the_tables_go_into_results_in_place_of_their_own(tmp_path: Path) -> None:
    folder = checkout(tmp_path, start=START.format(ms=200), reference=START.format(ms=7).replace("Start", "Reference"))
    results = folder / "benchmarks" / "RESULTS.md"
    bench(folder, "start", "reference", "--results")
    assert results.read_text().startswith("# Measured\n\nWords by hand.\n\n<!-- phobos bench: start -->\n### Start (")
    assert "| check | 200 ms |  | <= 250 | met |" in results.read_text()
    before = results.read_text()
    (folder / "benchmarks/start.py").write_text("from figures import Figure, finish\n" + START.format(ms=300))
    bench(folder, "start", "--results")
    after = results.read_text()
    assert after == before.replace("| check | 200 ms |  | <= 250 | met |", "| check | 300 ms |  | <= 250 | MISSED |")
    bench(folder, "start", "--results", "--quick")
    assert results.read_text() == after  # a look is no measurement
    assert bench(folder, "start", "--markdown").stdout.startswith(
        "### Start (`python benchmarks/start.py`)\n\npython 3.\n"
    )


def test_tables_for_readers_stand_before_the_figures_that_have_a_target(tmp_path: Path) -> None:
    wide = START.format(ms=200).rstrip()[:-1] + ', ["Checks:\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n"])\n'
    done = bench(checkout(tmp_path, start=wide), "start", "--markdown")
    rest = done.stdout.partition("\n\npython 3.\n\n")[2]
    assert rest == (
        "Checks:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n| | value | ratio | target | |\n|---|---|---|---|---|\n"
        "| check | 200 ms |  | <= 250 | met |\n"
    )
    assert "bare" in bench(tmp_path, "start").stdout


def test_what_cannot_be_done_says_so(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    assert "there is no benchmark `strat`" in bench(folder, "strat", code=2).stderr
    assert "start" in bench(folder, "--list").stdout


def test_an_installed_package_without_its_checkout_says_where_the_benchmarks_are(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "phobos", tmp_path / "phobos", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-m", "phobos", "bench"], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    assert "belong to the source checkout" in done.stderr and str(tmp_path) in done.stderr


def test_a_target_may_lie_on_either_side_and_is_of_the_ratio_where_there_is_one() -> None:
    assert Figure("x", 5, "ms").is_met is None
    assert Figure("x", 5, "ms", target=5).is_met and not Figure("x", 6, "ms", target=5).is_met
    assert Figure("x", 6, "TB/s", target=5, at_most=False).is_met
    assert Figure("x", 900, "ms", 1.9, "NumPy", 3).is_met and not Figure("x", 1, "ms", 3.1, "NumPy", 3).is_met
    assert cells(Figure("x", 0.01234, "us", 0.98, "copy", 0.9, False)) == (
        "x",
        "0.0123 us",
        "0.98 of copy",
        ">= 0.9",
        "met",
    )
    told = {0: "0", 12: "12", 12.5: "12.5", 123.4: "123", 0.5: "0.5", 999.9: "1 000", 1268.3: "1 270", 20480: "20 480"}
    told |= {1234567: "1 230 000", -1268.3: "-1 270", 4.096e9: "4 100 000 000", float("inf"): "inf"}
    assert {n: number(n) for n in told} == told


def test_results_are_written_as_people_write_numbers() -> None:
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    assert not re.findall(r"\d[eE]\+\d+", text)


def test_every_script_of_the_suite_is_there_and_ends_in_the_one_shape() -> None:
    for part in suite.PARTS:
        text = (ROOT / "benchmarks" / part.script).read_text()
        assert "finish(" in text, part.script


def test_a_figure_survives_being_kept() -> None:
    from dataclasses import asdict

    one = Figure("x", 1.5, "us", 0.5, "y", 2, False)
    assert figure_of(json.loads(json.dumps(asdict(one)))) == one


def test_figures_of_a_card_are_shaped_from_numbers_under_keys_and_from_tables() -> None:
    found = list(leaves({"tflops": {"f32": {"4096": 37, "8192": 38.5}, "note": "text"}}))
    assert [(one.name, one.value, one.unit) for one in found] == [
        ("f32, 4096", 37, "tflops"),
        ("f32, 8192", 38.5, "tflops"),
    ]
    rows = [["flat", None, 132, 2.5, 1.0], ["xyz", 4, 1, 3.0, "-"]]
    found = list(leaves({"product": {"head": ["schedule", "group", "workers", "us", "ratio"], "rows": rows}}))
    assert [(one.name, one.value) for one in found] == [
        ("product: flat None 132: us", 2.5), ("product: flat None 132: ratio", 1.0), ("product: xyz 4 1: us", 3.0),
    ]  # fmt: skip


@pytest.mark.slow
def test_the_front_end_part_runs(tmp_path: Path) -> None:
    result: Any = suite.one(suite.Part("frontend", "frontend.py", "", ("--lines", "60", "--repeat", "1")), quick=False)
    assert not result.failed, result.failed
    named = {one.name: one for one in result.figures}
    assert named["check, 1 000 lines"].target == 400 and named["one edit in a kernel: analysed again"].is_met

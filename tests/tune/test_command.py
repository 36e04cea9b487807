"""`phobos tune` and `phobos run` after it; what is printed, kept, drawn, and left by Ctrl-C. What is about processes is
started as one, the rest is asked for in this one."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tests.command import HEARS_CTRL_C, phobos
from tests.tune.support import SCALE, STAGED

ROOT = Path(__file__).resolve().parents[2]
HEAD = "// run: kernel=scale N=100 X=iota Y=zeros alpha=3\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def started(*words: str) -> subprocess.CompletedProcess[str]:
    """As a user starts it."""
    return subprocess.run([sys.executable, "-m", "phobos", *words], capture_output=True, text=True, timeout=120)


def scale(text: str = SCALE, head: str = HEAD) -> str:
    Path("scale.ph").write_text(head + text.replace("[4, 8, 16, 32, 64]", "[4, 8, 100]"))
    return "scale.ph"


def planted(*words: str, terminal: int | None = None) -> subprocess.Popen[str]:
    """The command with planted faults at the boundary of its workers."""
    code = (
        "import sys\n"
        "from phobos.runtime.tuning import tuning\n"
        "from tests.tune import planted\n"
        "tuning.judge = planted.judge\n"
        "from phobos.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    return subprocess.Popen(
        [*HEARS_CTRL_C, sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.PIPE if terminal is None else terminal,
    )  # fmt: skip


def test_tune_then_run_uses_the_winner_and_says_so() -> None:
    done = started("tune", scale(), "--device", "cpu", "--repeat", "3")
    assert done.returncode == 0 and done.stderr == ""
    assert "this times the reference runtime itself: it says nothing about a GPU" in done.stdout
    best = done.stdout.partition("best: ")[2].partition(",")[0]
    assert best in ("TILE=4", "TILE=8", "TILE=100")
    assert "kept: runs of the reference runtime use it for N in (2^6, 2^7]" in done.stdout
    ran = started("run", "scale.ph", "--device", "cpu")
    assert ran.returncode == 0 and f"constants from tuning, {time.strftime('%Y')}" in ran.stdout
    assert f"  constants  {best.replace('=', ' = ')}\n" in ran.stdout
    planned = json.loads(phobos("run", "scale.ph", "--device", "cpu", "--plan", "--json").stdout)["plan"]
    assert planned["constants"] == {"TILE": int(best.partition("=")[2])} and best in planned["notes"][0]
    ignored = phobos("run", "scale.ph", "--device", "cpu", "--no-tuned").stdout
    assert "  constants  TILE = 4\n" in ignored and "tuning" not in ignored
    other = phobos("run", "scale.ph", "--device", "cpu", "--set", "N=1000").stdout
    assert "  constants  TILE = 4\n" in other and "tuning" not in other
    # what is expected bit by bit is not left to what somebody tuned
    digest = ran.stdout.partition("sha256 ")[2].split()[0]
    scale(head=HEAD + f"// expect: Y sha256={digest}\n")
    assert "tuning" not in phobos("run", "scale.ph", "--device", "cpu").stdout
    # and the result is the reference's, whatever was tuned
    assert phobos("run", "scale.ph", "--device", "cpu", "--verify").returncode == 0


def test_json_has_every_row_and_the_second_run_takes_them_from_disk() -> None:
    command = ("tune", scale(), "--device", "cpu", "--repeat", "2", "--json")
    first = json.loads(phobos(*command).stdout)
    assert first["kernel"] == "scale" and first["device"] == "cpu" and first["sizes"] == {"N": 100}
    assert {row["variant"]["constants"]["TILE"] for row in first["rows"]} == {4, 8, 100}
    assert all(row["status"] in ("ok", "slower") and row["elapsed_ms"] > 0 for row in first["rows"])
    assert first["best"]["variant"] in [row["variant"] for row in first["rows"]]
    assert (first["from_disk"], first["left"], first["interrupted"]) == (0, 0, False)
    again = json.loads(phobos(*command).stdout)
    assert again["from_disk"] == 3 and again["rows"] == first["rows"]
    assert json.loads(phobos(*command, "--fresh").stdout)["from_disk"] == 0


def test_held_constants_and_grids() -> None:
    Path("staged.ph").write_text("// run: N=100 X=iota\n" + STAGED)
    found = json.loads(phobos("tune", "staged.ph", "--device", "cpu", "--set", "TILE=8", "--resident", "2",
                              "--repeat", "1", "--json").stdout)  # fmt: skip
    assert found["held"] == {"TILE": 8, "STAGES": 2}
    assert [sorted(r["variant"]["constants"]) for r in found["rows"]] == [[], []]
    assert {tuple(row["grid"]) for row in found["rows"]} == {(1, 1, 1), (2, 1, 1)}


def test_planted_faults_are_rows_and_the_exit_code_says_so(tmp_path: Path) -> None:
    Path("scale.ph").write_text(HEAD + SCALE)
    command = planted("tune", "scale.ph", "--device", "cpu", "--timeout", "2", "--repeat", "2", "--plot", "out.svg")
    out, err = command.communicate(timeout=120)
    assert command.returncode == 1 and err == ""
    for said in ("wrong: Y[99] is 298", "crashed: its process was killed by SIGSEGV", "hung: no answer within 6 s",
                 "crashed: ZeroDivisionError: a defect", "best: TILE=4", "4 variants went wrong"):  # fmt: skip
        assert said in out
    root = ElementTree.parse("out.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"TILE=4", "TILE=8", "wrong", "crashed", "hung"} <= set(words)
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any("SIGSEGV" in title for title in titles)


def test_ctrl_c_prints_the_best_so_far_leaves_whole_files_and_is_gone_on_with(cache: Path) -> None:
    Path("scale.ph").write_text(HEAD + SCALE.replace("[4, 8, 16, 32, 64]", "[4, 5, 32, 6]"))
    command = planted("tune", "scale.ph", "--device", "cpu", "--timeout", "60", "--repeat", "2", "--plot", "out.svg")
    rows: list[Any] = []
    until = time.monotonic() + 60
    while len(rows) < 2 and time.monotonic() < until:  # the third hangs
        time.sleep(0.1)
        for file in (cache / "tuned" / "rows").glob("*.json"):
            rows = json.loads(file.read_text())["rows"]
    time.sleep(0.3)
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=30)
    assert command.returncode == 130 and "Traceback" not in err
    assert "best: TILE=" in out and "interrupted: 2 variants not tried; the same command goes on with them" in out
    assert not list((cache / "tuned").glob("*.json")) and "kept:" not in out  # no winner of half a search
    assert not [path for path in cache.rglob("*") if ".phobos-" in path.name]
    assert not [path for path in Path().iterdir() if path.name.startswith(".phobos-")]
    done = started("tune", "scale.ph", "--device", "cpu", "--repeat", "2")
    assert done.returncode == 0 and "2 rows of an earlier run taken from disk" in done.stdout


def test_a_bar_on_a_terminal_names_the_variant_and_the_best() -> None:
    master, slave = pty.openpty()
    Path("scale.ph").write_text(HEAD + SCALE.replace("[4, 8, 16, 32, 64]", "[4, 5, 32]"))
    command = planted("tune", "scale.ph", "--device", "cpu", "--timeout", "2", "--repeat", "1", terminal=slave)
    os.close(slave)
    seen = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    out, _ = command.communicate(timeout=60)
    os.close(master)
    shown = seen.decode("utf-8", "replace")
    assert "trying" in shown and "3/3" in shown and "TILE=32; best" in shown
    assert "trying" not in out


def test_a_budget() -> None:
    done = phobos("tune", scale(), "--device", "cpu", "--budget", "0")
    assert done.returncode == 0 and "the budget is spent: 3 variants not tried" in done.stdout


def test_what_cannot_be_tuned_says_why() -> None:
    broken = SCALE.replace("* alpha", "* beta")
    done = phobos("tune", scale(broken), "--device", "cpu")
    assert done.returncode == 1 and "PH101" in done.stdout and "nothing was tried" in done.stdout
    found = json.loads(phobos("tune", scale(broken), "--device", "cpu", "--json").stdout)
    assert found["findings"][0]["code"] == "PH101" and found["rows"] == [] and found["best"] is None
    for words, said in {
        ("none.ph",): "no such file",
        (scale(), "--kernel", "skale"): "did you mean `scale`?",
        (scale(), "--set", "M=3"): "has no parameter, extent or constant `M`",
        (scale(), "--device", "cuda:7"): "no such device",
        (scale(), "--scratch", "Q"): "no tensor `Q`",
        (scale(), "--plot", "nowhere/out.svg"): "there is no directory",
        (scale(), "--timeout", "0"): "must be ended some time",
        (scale(), "--schedule", "fast"): "no schedule is called",
        (scale(), "--jobs", "0"): "not a whole number of at least 1",
    }.items():
        done = phobos("tune", *words, *(() if "--device" in words else ("--device", "cpu")))
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, (words, done.stderr)
    done = phobos("tune", scale(head=HEAD.rstrip() + " seed=-1\n"), "--device", "cpu")
    assert done.returncode == 2 and "scale.ph:1: seed: '-1' is no seed" in done.stderr


def test_doctor_shows_what_is_tuned_and_clears_it(cache: Path) -> None:
    phobos("tune", scale(), "--device", "cpu", "--repeat", "1")
    shown = {part["part"]: part for part in json.loads(phobos("doctor", "--json").stdout)["checks"]}
    assert shown["tuning"]["winners"] == 1 and shown["tuning"]["folder"] == str(cache / "tuned")
    done = phobos("doctor", "--clear-tuned").stdout
    assert "0 winners" in done and "(2 files removed just now)" in done
    assert not list((cache / "tuned").rglob("*.json"))
    assert "tuning" not in phobos("run", "scale.ph", "--device", "cpu").stdout

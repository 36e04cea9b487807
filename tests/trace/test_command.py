"""`phobos trace`: the options of `phobos run`, its gate, and what is printed and written."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from phobos.cli import main
from tests.trace.test_steps import SLOW

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("slow.ph").write_text("// run: kernel=slow N=256 X=zeros which=2 times=3 grid=8\n" + SLOW)
    return "slow.ph"


def test_the_header_and_the_command_line_say_what_is_traced(slow: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["trace", slow, "--device", "cpu", "--arg", "which=6", "--out", "t.json", "--plot", "t.svg"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "slow on cpu (reference runtime): 8 blocks, 2 barriers crossed" in said
    assert "line 8 to line 12: blocks wait for block 6, which works 2.99 times" in said
    assert "trace in t.json" in said and "drawn in t.svg" in said
    assert json.loads(Path("t.json").read_text())["otherData"]["kernel"] == "slow"
    ElementTree.parse("t.svg")


def test_json_on_stdout_and_nothing_else(slow: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", slow, "--device", "cpu", "--json", "--out", "t.json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert read["phases"][1]["slowest"] == 2 and Path("t.json").exists()


def test_what_the_checker_forbids_is_not_traced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "wrong.ph"
    source.write_text("kernel k(X: tensor<f32>[N]) {\n  X[ctx.block.x] = nothing\n}\n")
    assert main(["trace", str(source), "--device", "cpu", "--set", "N=4", "--arg", "X=zeros"]) == 1
    said = capsys.readouterr().out
    assert "PH101" in said and said.endswith("nothing has run\n")


def test_a_kernel_that_hangs_has_no_trace_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(ROOT / "examples/hang.ph"), "--device", "cpu"]) == 1
    said = capsys.readouterr().out
    assert "deadlock: block 0 waits at this barrier" in said and said.endswith("there is no trace\n")
    assert main(["trace", str(ROOT / "examples/hang.ph"), "--device", "cpu", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["code"] == "PH205"


@pytest.mark.parametrize(
    "words, message",
    [
        (["--out", "no/t.json"], "there is no directory"),
        (["--plot", "no/t.svg"], "there is no directory"),
        (["--kernel", "fast"], "has no kernel `fast`"),
        (["--grid", "x"], "no grid"),
        (["--memory", "0"], "not a whole number"),
        (["--arg", "X=nowhere"], "nowhere"),
        (["--device", "cuda:9"], "no such device"),
    ],
)
def test_what_cannot_be_done_is_said(
    slow: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", slow, *words]) == 2
    assert message in capsys.readouterr().err
    assert not Path("t.json").exists()


def test_a_fusion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(ROOT / "examples/fused.ph"), "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "1 barrier crossed" in said and "`largest` and `mean`" in said and "20 blocks of `spread`" in said


def test_two_outputs_are_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "one")
    assert main(["trace", str(ROOT / "examples/saxpy.ph"), "--device", "cpu", "--out", path, "--plot", path]) == 2
    assert "--out and --plot both write" in capsys.readouterr().err

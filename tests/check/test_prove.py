"""`--prove`: an error that says that something happens is shown to happen, and the command it prints shows it."""

from __future__ import annotations

import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from phobos.check import findings
from phobos.cli import main
from phobos.runtime.lanes import Lane, Panel, as_svg, as_text
from phobos.runtime.replay import prove
from tests.check.markdown import Case, cases, configured

FOLDER = Path(__file__).parent
HAPPEN = ("PH203", "PH204", "PH205", "PH215", "PH501", "PH502", "PH503")
# All but the one case whose hang needs an array full of sevens, which the search does not try; and what does not run.
CASES = [
    case
    for name in ("barriers.md", "races.md", "catalogue.md")
    for case in cases(FOLDER / name)
    if any(f"error[{code}]" in case.text for code in HAPPEN)
    and "7 {  // error[PH203] | warning" not in case.text
    and "error[PH1" not in case.text
]


@pytest.mark.parametrize("case", CASES, ids=[case.where for case in CASES])
def test_every_hang_and_every_race_of_the_suites_is_shown(case: Case) -> None:
    found = findings("case.ph", case.text, configured(case))
    errors = [d for d in found if d.code in HAPPEN and d.severity == "error"]
    assert errors
    for diagnostic in errors:
        proof = prove("case.ph", case.text, diagnostic)
        assert proof is not None, f"{case.where} {case.name}: {diagnostic.code}\n{case.text}"
        assert proof.kind == ("race" if diagnostic.code.startswith("PH5") else "deadlock")


def test_the_command_that_is_printed_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = next(case.text for case in CASES if "PH205" in case.text)
    path = tmp_path / "sweep.ph"
    path.write_text(text)
    assert main(["check", str(path), "--prove", "--output-format", "concise"]) == 1
    first, *below = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}:") and below[0].startswith("    it happens: deadlock")
    assert any("to see it: phobos run" in line for line in below)
    assert all(line.startswith("    ") for line in below[:-1]), "no problem matcher takes a proof for a finding"
    assert main(["check", str(path), "--prove", "--output-format", "full"]) == 1
    shown = capsys.readouterr().out
    assert "it happens: deadlock" in shown and "  block 0 |======|............  waits (line " in shown
    command = shlex.split(shown.partition("to see it: ")[2].split("\n")[0])
    assert command[:2] == ["phobos", "run"]
    assert main(command[1:]) == 1
    assert "confirms PH205" in capsys.readouterr().out


def test_nothing_is_searched_for_where_nothing_happens() -> None:
    text = "@persistent(2)\nkernel k(X: tensor<f32>[N]) {\n  X[0] = 1.0\n}\n"
    (diagnostic,) = [d for d in findings("k.ph", text) if d.severity == "error"]
    assert prove("k.ph", text, diagnostic) is None


def test_a_cell_of_two_subscripts_is_named_whole() -> None:
    text = (
        "@persistent\nkernel k(X: tensor<f32>[M, N], Y: tensor<f32>[M]) {\n  let p = ctx.block.x\n"
        "  X[p, 0] = f32(p)\n  Y[p] = X[0, 0]\n}\n"
    )
    (diagnostic,) = [d for d in findings("k.ph", text) if d.severity == "error"]
    proof = prove("k.ph", text, diagnostic)
    assert proof is not None
    said = [lane.said for lane in proof.lanes[:2]]
    assert said == ["stores to X[0, 0] (line 4)", "loads X[0, 0] (line 5)"]


# --- drawn ------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"
LANES = (
    Lane(0, "waits", "waits (line 7)"), Lane(1, "left", ""), Lane(2, "collides", "writes <X> & \x00"),
    Lane(10, "works", ""),
)  # fmt: skip


def test_lanes_as_text() -> None:
    assert as_text(LANES) == (
        "  block  0 |======|............  waits (line 7)",
        "  block  1 |====>",
        "  block  2 |===!                 writes <X> & \x00",
        "  block 10 |====",
    )


def test_the_picture_is_well_formed_and_says_what_the_terminal_says() -> None:
    panels = [Panel("PH204 at a<b>&.ph:7", "it happens: " + "word " * 60, LANES, "to see it: phobos run"),
              Panel("second", "short", LANES[:1], "")]  # fmt: skip
    root = ElementTree.fromstring(as_svg(panels))
    said = [text.text for text in root.iter(f"{SVG}text")]
    assert said[0] == "PH204 at a<b>&.ph:7" and "writes <X> & \ufffd" in said and "block 10" in said
    assert sum(one.text is not None and one.text.startswith("block ") for one in root.iter(f"{SVG}text")) == 5
    for state, count in (("works", 5), ("waits", 2), ("left", 1), ("collides", 1)):
        assert sum(state in one.get("class", "").split() for one in root.iter()) == count
    height = float(root.get("height", ""))
    rows = [float(one.get("y", "")) for one in root.iter(f"{SVG}text")]
    assert rows == sorted(rows) and rows[-1] < height
    assert all(len(text or "") <= 110 for text in said)


def test_plot_writes_what_was_shown_and_nothing_where_nothing_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = next(case.text for case in CASES if "PH205" in case.text)
    source, picture = tmp_path / "sweep.ph", tmp_path / "out.svg"
    source.write_text(text)
    assert main(["check", str(source), "--prove", "--plot", str(picture)]) == 1
    root = ElementTree.fromstring(picture.read_text("utf-8"))
    assert f"PH205 barrier-trip-count-varies at {source}:" in next(root.iter(f"{SVG}text")).text  # type: ignore[operator]
    picture.unlink()
    source.write_text("kernel k(X: tensor<f32>[N]) {\n  X[ctx.block.x * 8 :+ 8] = 1.0\n}\n")
    capsys.readouterr()
    assert main(["check", str(source), "--prove", "--plot", str(picture)]) == 0
    assert "nothing to draw" in capsys.readouterr().err and not picture.exists()
    assert main(["check", str(source), "--plot", str(picture)]) == 2
    assert "--prove" in capsys.readouterr().err
    source.write_text(text)
    assert main(["check", str(source), "--prove", "--plot", str(tmp_path / "no" / "out.svg")]) == 2
    assert "cannot be written" in capsys.readouterr().err

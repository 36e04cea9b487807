"""`phobos check --kernel a+b`: the findings of both kernels, and what stands against one launch of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phobos.check.configuration import DEFAULT
from phobos.check.engine import findings
from phobos.cli import main

TEXT = """kernel fill(I: tensor<i32>[N], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    let used = I[p]
    if used > 0 { Y[p * 64 :+ 64] = 0.0 }
}
kernel pick(I: tensor<i32>[N], Y: tensor<f32>[N], V: tensor<f32>[N]) {
    let p = ctx.block.x
    let i = I[p]
    V[p] = Y[i]
}
kernel halves(Y: tensor<f16>[N]) {
    let p = ctx.block.x
    Y[p * 64 :+ 64] = 0.0
}
kernel wrong(Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 64 :+ 64] = missing
}
"""


def codes(kernel: str, order: str = "ask") -> list[str]:
    from dataclasses import replace

    found = findings("t.ph", TEXT, replace(DEFAULT, kernel=kernel, order=order))
    return [d.code for d in found if d.severity == "error"]


@pytest.mark.parametrize(
    ("kernel", "order", "expected"),
    [
        ("fill", "ask", []),
        ("fill+pick", "ask", ["PH506"]),
        ("fill+pick", "barrier", []),
        ("fill+pick", "independent", []),
        ("fill+halves", "ask", ["PH104"]),
        ("fill+halves", "barrier", ["PH104"]),
        ("fill+wrong", "ask", ["PH101"]),  # first what is wrong with the kernel itself
    ],
)
def test_findings_of_a_fusion(kernel: str, order: str, expected: list[str]) -> None:
    assert codes(kernel, order) == expected


def test_what_holds_by_somebodys_word_is_said() -> None:
    from dataclasses import replace

    word = replace(DEFAULT, kernel="fill+pick", order="independent")
    told = [d for d in findings("t.ph", TEXT, word) if "on your word" in d.message or "do not overlap" in d.message]
    assert [(d.code, d.severity) for d in told if d.code == "PH506"] == [("PH506", "info")]
    assert TEXT[told[-1].span.start : told[-1].span.end] == "Y[i]"
    alias = [d.message for d in told if d.code == "PH505"]
    assert any("`Y` and `V` do not overlap" in message for message in alias)
    assert not [d for d in findings("t.ph", TEXT, replace(word, order="barrier")) if "no barrier" in d.message]


def test_a_rule_that_is_off_is_not_reported() -> None:
    from dataclasses import replace

    off = replace(DEFAULT, kernel="fill+pick", ignore=("PH506",))
    assert [d.code for d in findings("t.ph", TEXT, off) if d.severity == "error"] == []


def test_what_the_fusion_alone_is_told_can_be_silenced() -> None:
    from dataclasses import replace

    configuration = replace(DEFAULT, kernel="fill+halves")
    (told,) = [one for one in findings("t.ph", TEXT, configuration) if one.severity == "error"]
    line = TEXT.count("\n", 0, told.span.start)
    lines = TEXT.split("\n")
    lines[line] += f"  // phobos: ignore[{told.code}]"
    after = findings("t.ph", "\n".join(lines), configuration)
    assert not [one for one in after if one.severity == "error" or one.code == "PH901"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.ph"
    file.write_text(TEXT)
    assert main(["check", "--kernel", "fill+pick", "--isolated", "--output-format", "json", str(file)]) == 1
    (found,) = [d for d in json.loads(capsys.readouterr().out) if d["severity"] == "error"]
    assert found["code"] == "PH506" and found["location"] == {"row": 9, "column": 12}
    assert found["related"][0]["location"] == {"row": 4, "column": 19}
    assert "--order barrier" in found["help"]
    assert main(["check", "--kernel", "fill+pick", "--order", "barrier", "--isolated", str(file)]) == 0
    assert main(["check", "--kernel", "fill+pick", "--order", "perhaps", str(file)]) == 2
    assert "invalid choice: 'perhaps'" in capsys.readouterr().err

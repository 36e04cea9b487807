"""`phobos run --kernel a+b` and `// run: kernel=a+b`: the plan, the results, and what stands against it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

from phobos.cli import main

TEXT = """// run: kernel=scale+shift N=300 X=iota Y=zeros Z=zeros
// expect: Z[7] = 15.0
// run: kernel=fill+pick N=32 I=zeros Y=zeros V=zeros order=barrier
// expect: V[31] = 1.0
// run: kernel=scale N=64 X=ones Y=zeros
// expect: Y[0] = 2.0
// run: kernel=fill+pick N=32 I=zeros Y=zeros V=zeros order=independent
// expect: fault=race
kernel scale(X: tensor<f32>[N], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
kernel shift(Y: tensor<f32>[N], Z: tensor<f32>[N]) {
    let p = ctx.block.x
    Z[p * 128 :+ 128] = Y[p * 128 :+ 128] + 1.0
}
kernel fill(Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 8 :+ 8] = 1.0
}
kernel pick(I: tensor<i32>[N], Y: tensor<f32>[N], V: tensor<f32>[N]) {
    let p = ctx.block.x
    let i = I[p]
    V[p] = Y[i]
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "t.ph"
    path.write_text(TEXT)
    return str(path)


def test_the_runs_of_a_file(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", file, "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert out.count("expectation met") == 4
    assert "before phase 2: `shift` reads `Y` (line 15), which `scale` writes (line 11)" in out
    assert "whether they meet is not known (a subscript holds loaded data), and the order asked for is a barrier" in out
    assert "`pick` need not wait for `fill`: on your word" in out


def test_json_and_files(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "z.npy"
    words = ["run", file, "--kernel", "scale+shift", "--device", "cpu", "--json", "--verify", "--out", f"Z={out}"]
    words += ["--grid", "2", "--schedule", "persistent_blocked", "--detect", "races"]
    assert main(words) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["kernel"] == "scale+shift" and made["plan"]["grid"] == [2, 1, 1]
    assert made["plan"]["schedule"] == "persistent-blocked" and made["verified"]["ok"]
    assert [[k["kernel"] for k in phase["kernels"]] for phase in made["plan"]["phases"]] == [["scale"], ["shift"]]
    assert made["plan"]["phases"][1]["waits"][0].startswith("`shift` reads `Y`")
    numpy.testing.assert_array_equal(numpy.load(out), numpy.arange(300) * 2 + 1)
    assert set(made["outputs"]) == {"Y", "Z"}


def test_a_question_stops_the_run(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--set", "N=32", "--arg", "I=zeros", "--arg", "Y=zeros", "--arg", "V=zeros", "--device", "cpu"]
    plain = str(Path(file).with_name("plain.ph"))
    Path(plain).write_text(TEXT[TEXT.index("kernel scale(") :])
    assert main(["run", plain, "--kernel", "fill+pick", *sizes]) == 1
    out = capsys.readouterr().out
    assert "error[PH506]: whether `pick` must wait for `fill` is not known" in out and "nothing has run" in out
    assert main(["run", plain, "--kernel", "fill+pick", "--order", "barrier", *sizes]) == 0
    capsys.readouterr()
    assert main(["run", plain, "--kernel", "fill", "--order", "barrier", *sizes]) == 2
    assert "--order is for a fusion" in capsys.readouterr().err
    assert main(["run", plain, "--kernel", "fill+pock", *sizes]) == 2
    assert "has no kernel `pock`: did you mean `pick`?" in capsys.readouterr().err


def test_an_order_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.ph"
    file.write_text(TEXT.replace("order=barrier", "order=perhaps"))
    assert main(["run", str(file), "--device", "cpu"]) == 2
    assert "no order is called 'perhaps'" in capsys.readouterr().err

"""`phobos run` as a shell sees it: what it prints, what it saves, how it exits; in the reference runtime."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import phobos
from phobos.cli import main

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests" / "run" / "cases").glob("*.ph"))
EXAMPLES = sorted((ROOT / "examples").glob("*.ph"))

SAXPY = """
kernel saxpy(X: tensor<f32>[N], Y: tensor<f32>[N], alpha: f32) {
  let i = ctx.block.x * 64
  Y[i :+ 64] = X[i :+ 64] * alpha + Y[i :+ 64]
}
"""

HANG = """
@persistent
kernel hang(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  if ctx.block.x > 0 {
    grid_barrier(BAR)
  }
}
"""


@pytest.fixture
def phobos_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def run(text: str, *words: str, device: str | None = "cpu") -> tuple[int, str, str]:
        (tmp_path / "k.ph").write_text(text)
        code = main(["run", "k.ph", *(["--device", device] if device else []), *words])
        out = capsys.readouterr()
        assert "Traceback" not in out.err
        return code, out.out, out.err

    return run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("kernel=none N=8", "has no kernel `none`"),
        ("X=zeros Y=zeros alpha=1 N=1.5", "`N` is '1.5', but it must be an integer"),
        ("X=zeros Y=zeros alpha=1 N=8 Z=3", "no parameter, extent or constant `Z`"),
        ("X=@none.npy Y=zeros alpha=1 N=8", "none.npy: no such file"),
        ("X=zeros Y=zeros N=8", "parameter `alpha` (f32) of `saxpy` is not given"),
    ],
)
def test_what_a_header_gets_wrong_is_told_with_its_line(phobos_run, words: str, said: str) -> None:  # type: ignore[no-untyped-def]
    text = f"// run: X=ones Y=zeros alpha=1 N=8\n// run: {words}\n{SAXPY}"
    code, _, err = phobos_run(text, device=None)
    assert code == 2 and err.startswith("phobos: error: k.ph:2: ") and said in err
    for own in (("--arg", "Q=3"), ("--cluster", "none:3"), ("--out", "Q=q.npy")):
        code, _, err = phobos_run(text, *own, device=None)
        assert code == 2 and "k.ph:" not in err, "what is wrong may stand on the command line"


@pytest.mark.parametrize("path", [*EXAMPLES, *CASES], ids=lambda path: path.stem)
def test_every_example_and_case_meets_its_own_header(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(path), "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "expectation met" in out and "NOT MET" not in out


@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.stem != "hang"], ids=lambda path: path.stem)
def test_all_block_phases_of_the_examples_run_in_batches_and_agree_with_single_blocks(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(path), "--device", "cpu", "--json", "--verify"]) == 0
    printed = json.loads(capsys.readouterr().out)
    for report in printed if isinstance(printed, list) else [printed]:
        assert report["block_phases"] == report["batched_block_phases"] > 0
        assert report["verified"]["ok"] and "bit by bit" in report["verified"]["message"]


def test_json_has_what_is_promised(phobos_run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = phobos_run(
        SAXPY, "--set", "N=100", "--arg", "X=iota", "--arg", "Y=ones", "--arg", "alpha=2", "--json"
    )
    report = json.loads(out)
    y = (np.arange(100, dtype=np.float32) * np.float32(2) + np.float32(1)).astype(np.float32)
    assert code == 0 and report["kernel"] == "saxpy" and report["fault"] is None and report["elapsed_ms"] > 0
    assert (
        report["plan"]["grid"] == [2, 1, 1] and report["plan"]["block"] == 256 and report["plan"]["schedule"] == "flat"
    )
    held = report["outputs"]["Y"]
    assert held["shape"] == [100] and held["dtype"] == "f32" and held["min"] == 1.0 and held["max"] == 199.0
    assert held["sha256"] == hashlib.sha256(y.tobytes()).hexdigest()


def test_arrays_come_from_files_and_go_to_files(phobos_run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    x = np.arange(70, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "many.npz", y=x * 10, z=x)
    code, _, _ = phobos_run(
        SAXPY,
        "--arg",
        "X=@x.npy",
        "--arg",
        "Y=@many.npz:y",
        "--arg",
        "alpha=0.5",
        "--out",
        "Y=out.npy",
        "--out",
        "X=x2.npy",
    )
    assert code == 0
    assert np.array_equal(np.load(tmp_path / "out.npy"), x * 10.5) and np.array_equal(np.load(tmp_path / "x2.npy"), x)
    assert not list(tmp_path.glob(".phobos-*"))


def test_bf16_goes_through_files(phobos_run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    text = "kernel k(X: tensor<bf16>[N]) {\n  X[ctx.block.x * 8 :+ 8] = X[ctx.block.x * 8 :+ 8] * 2.0\n}\n"
    assert phobos_run(text, "--set", "N=9", "--arg", "X=iota", "--out", "X=a.npy")[0] == 0
    code, out, _ = phobos_run(text, "--arg", "X=@a.npy", "--json")
    assert code == 0 and json.loads(out)["outputs"]["X"]["max"] == 32.0


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        ("zeros", np.zeros(9)), ("ones", np.ones(9)), ("iota", np.arange(9)), ("-2.5", np.full(9, -2.5)),
        ("random:seed=4", np.random.default_rng(4).random(9)), ("random", np.random.default_rng(0).random(9)),
        ("normal:seed=4", np.random.default_rng(4).standard_normal(9)),
    ],
)  # fmt: skip
def test_what_an_array_may_be_filled_with(phobos_run, tmp_path: Path, what: str, wanted: np.ndarray) -> None:  # type: ignore[no-untyped-def]
    text = "kernel k(X: tensor<f64>[3, 3], Y: tensor<f64>[1]) {\n  Y[0] = X[0, 0]\n}\n"
    assert phobos_run(text, "--arg", f"X={what}", "--arg", "Y=0", "--out", "X=x.npy")[0] == 0
    assert np.array_equal(np.load(tmp_path / "x.npy"), wanted.reshape(3, 3))


def test_seed_is_for_arrays_without_their_own_and_integers_are_drawn_below_ten(phobos_run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    text = "kernel k(X: tensor<i32>[8], Y: tensor<f32>[8]) {\n  Y[0] = 1.0\n}\n"
    assert phobos_run(
        text, "--arg", "X=random", "--arg", "Y=random:seed=2", "--seed", "5", "--out", "X=x.npy", "--out", "Y=y.npy"
    )[0] == 0  # fmt: skip
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.random.default_rng(5).integers(0, 10, 8))
    assert np.array_equal(np.load(tmp_path / "y.npy")[1:], np.random.default_rng(2).random(8).astype(np.float32)[1:])


def test_the_command_line_wins_over_the_header(phobos_run) -> None:  # type: ignore[no-untyped-def]
    text = "// run: N=100 X=iota Y=ones alpha=2 seed=3 grid=1\n" + SAXPY
    code, out, _ = phobos_run(text, "--set", "N=64", "--arg", "alpha=3", "--grid", "auto", "--json")
    report = json.loads(out)
    assert code == 0 and report["outputs"]["Y"]["max"] == 63 * 3 + 1 and report["outputs"]["Y"]["shape"] == [64]


def test_extents_of_an_own_file_win_over_the_header(phobos_run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    np.save(tmp_path / "x.npy", np.arange(5, dtype=np.float32))
    np.save(tmp_path / "seven.npy", np.zeros(7, np.float32))
    text = "// run: N=8 X=ones Y=ones alpha=2\n" + SAXPY
    code, out, _ = phobos_run(text, "--arg", "X=@x.npy", "--json")
    assert code == 0 and json.loads(out)["outputs"]["Y"]["shape"] == [5]
    named = "kernel k(X: tensor<f32>[N], N: i32) {\n  X[ctx.block.x * 64 :+ 64] = f32(N)\n}\n"
    code, out, _ = phobos_run("// run: N=8 X=ones\n" + named, "--arg", "X=@x.npy", "--json")
    assert code == 0 and json.loads(out)["outputs"]["X"]["max"] == 5.0, "so does a parameter of that name"
    code, _, err = phobos_run("// run: N=8 X=@x.npy Y=ones alpha=2\n" + SAXPY)
    assert code == 2 and "`N` is 8, but axis 0 of `X` (@x.npy) is 5" in err, "the header's own file wins over nothing"
    code, _, err = phobos_run("// run: Y=@seven.npy alpha=2\n" + SAXPY, "--arg", "X=@x.npy")
    assert code == 2 and "`N` is 5, but axis 0 of `Y` (@seven.npy) is 7" in err


def test_what_a_header_expects_is_of_its_own_arguments(phobos_run) -> None:  # type: ignore[no-untyped-def]
    text = "// run: N=100 X=iota Y=random alpha=2\n// expect: X[3] = 3\n// expect: Y[0] = 7\n" + SAXPY
    code, out, _ = phobos_run(text)
    assert code == 1 and "expectation NOT MET (line 3)" in out
    assert phobos_run(text, "--set", "N=100", "--arg", "X=iota", "--seed", "0", "--grid", "2")[0] == 1, "no other"
    assert phobos_run(text.replace(" X=iota", ""), "--arg", "X=iota")[0] == 1, "nor another than the header's"
    for words, names in (
        (("--set", "N=64"), "N"), (("--arg", "Y=ones", "--set", "N=64"), "N, Y"), (("--seed", "3"), "--seed"),
    ):  # fmt: skip
        code, out, _ = phobos_run(text, *words)
        assert code == 0 and "expectation not judged (line 3): Y[0] is " in out
        assert f"the command line gives others: {names}\n" in out and "expectation met (line 2)" in out
    hang = "// run: N=8 X=ones grid=2\n// expect: fault=race\n" + HANG
    assert phobos_run(hang, "--set", "N=9")[0] == 1, "another fault than the expected one is a fault"


def test_several_runs_of_a_file_are_a_list(phobos_run) -> None:  # type: ignore[no-untyped-def]
    text = "// run: N=10 X=iota Y=ones alpha=2\n// run: N=20 X=iota Y=ones alpha=2\n// expect: Y[19] = 38\n" + SAXPY
    code, out, _ = phobos_run(text, "--json")
    first, second = json.loads(out)
    assert code == 1 and first["exit_code"] == 0 and second["exit_code"] == 1
    assert second["expectations"] == [
        {"line": 3, "text": "Y[19] = 38", "met": False, "message": second["expectations"][0]["message"]}
    ]
    assert "Y[19] is 39, expected 38" in second["expectations"][0]["message"]


def test_an_unmet_digest_and_an_absent_fault(phobos_run) -> None:  # type: ignore[no-untyped-def]
    header = "// run: N=10 X=iota Y=ones alpha=2\n// expect: "
    code, out, _ = phobos_run(header + f"Y sha256={'0' * 64}\n" + SAXPY)
    assert code == 1 and "expectation NOT MET (line 2): Y has sha256 " in out
    code, out, _ = phobos_run(header + "fault=race\n" + SAXPY)
    assert code == 1 and "expected the fault race, but the run ended well" in out


def test_a_digest_of_the_run_itself_is_met(phobos_run) -> None:  # type: ignore[no-untyped-def]
    header = "// run: N=10 X=iota Y=ones alpha=2\n"
    digest = json.loads(phobos_run(header + SAXPY, "--json")[1])["outputs"]["Y"]["sha256"]
    assert phobos_run(f"{header}// expect: Y sha256={digest}\n" + SAXPY)[0] == 0


# --- faults and the gate ------------------------------------------------------------


def test_a_fault_prints_like_a_finding_and_confirms_one(phobos_run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = phobos_run(HANG, "--set", "N=8", "--arg", "X=zeros", "--grid", "3")
    assert code == 1
    assert "error[PH203]: deadlock: blocks 1 and 2 wait at this barrier, but block 0 has left the kernel" in out
    assert "--> k.ph:5:5" in out and "5 |     grid_barrier(BAR)" in out and "blocks part at this `if`" in out
    assert "confirms PH203 (line 5)" in out


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_lines_are_those_of_the_text_whatever_ends_them(phobos_run, end: str) -> None:  # type: ignore[no-untyped-def]
    text = HANG.replace("\n", end)
    out = phobos_run(text, "--set", "N=8", "--arg", "X=zeros", "--grid", "3")[1]
    assert "--> k.ph:5:5" in out and "confirms PH203 (line 5)" in out
    with pytest.raises(phobos.KernelFault, match=r"<text>:5: .*; line 4: "):
        phobos.kernel(text).reference(np.zeros(8, np.float32), grid=3)


def test_a_fault_in_json_has_its_place_and_blocks(phobos_run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = phobos_run(HANG, "--set", "N=8", "--arg", "X=zeros", "--grid", "3", "--json")
    fault = json.loads(out)["fault"]
    assert code == 1 and fault["kind"] == "deadlock" and fault["filename"] == "k.ph" and fault["blocks"] == [0, 1, 2]
    assert fault["location"] == {"row": 5, "column": 5} and fault["end_location"]["row"] == 5
    assert fault["related"][0]["location"]["row"] == 4


def test_a_finding_that_does_not_occur_is_said_so(phobos_run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = phobos_run(HANG, "--set", "N=8", "--arg", "X=zeros", "--grid", "1")
    assert code == 0 and "PH203 (line 5) did not occur at this grid and size" in out


def test_a_finding_about_the_text_stands_whatever_a_run_shows(phobos_run) -> None:  # type: ignore[no-untyped-def]
    text = HANG.replace("@persistent\n", "").replace(
        "  if ctx.block.x > 0 {\n    grid_barrier(BAR)\n  }", "  grid_barrier(BAR)"
    )
    code, out, _ = phobos_run(text, "--set", "N=8", "--arg", "X=zeros", "--grid", "3")
    assert code == 0 and "PH201 (line 3) stands, whatever a run shows" in out


def test_a_race_that_was_not_looked_for_is_said_so(phobos_run) -> None:  # type: ignore[no-untyped-def]
    text = """
@persistent
kernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  X[0] = f32(ctx.block.x)
  grid_barrier(BAR)
}
"""
    words = ("--set", "N=8", "--arg", "X=zeros", "--grid", "2")
    code, out, _ = phobos_run(text, *words)
    assert code == 0 and "was not looked for: --detect races does" in out
    code, out, _ = phobos_run(text, *words, "--detect", "races")
    assert code == 1 and "store different values to X[0]" in out and "confirms PH50" in out


def test_an_error_of_types_stops_the_run(phobos_run) -> None:  # type: ignore[no-untyped-def]
    text = SAXPY.replace("* alpha", "* beta")
    code, out, _ = phobos_run(text, "--set", "N=8", "--arg", "X=ones", "--arg", "Y=ones", "--arg", "alpha=1")
    assert code == 1 and "error[PH101]" in out and "nothing has run: 1 error of the checker" in out


def test_a_syntax_error_stops_the_run(phobos_run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = phobos_run(SAXPY.replace("Y[i :+ 64] =", "Y[i :+ ] ="), "--set", "N=8")
    assert code == 1 and "error[PH001]" in out


def test_an_error_in_another_kernel_does_not(phobos_run) -> None:  # type: ignore[no-untyped-def]
    text = SAXPY + "\nkernel other(X: tensor<f32>[N]) {\n  X[0] = nothing\n}\n"
    words = ("--set", "N=8", "--arg", "X=ones", "--arg", "Y=ones", "--arg", "alpha=1")
    assert phobos_run(text, "--kernel", "saxpy", *words)[0] == 0
    assert phobos_run(text, "--kernel", "other", "--set", "N=8", "--arg", "X=ones")[0] == 1


def test_a_broken_promise_is_a_fault_and_a_wrong_shape_is_not(phobos_run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    text = "@aligned(N = 64)\n" + SAXPY.lstrip()
    words = ("--arg", "X=ones", "--arg", "Y=ones", "--arg", "alpha=1")
    code, out, _ = phobos_run(text, "--set", "N=100", *words)
    assert code == 1 and "error[PH303]: aligned-broken: N = 100 is not a whole number of 64" in out
    np.save(tmp_path / "x.npy", np.zeros((3, 3), np.float32))
    code, _, err = phobos_run(text, "--arg", "X=@x.npy", "--set", "N=3", *words[2:])
    assert code == 2 and "rank" in err and "k.ph:2:" in err


def test_a_limit_of_time_ends_a_kernel_that_does_not(phobos_run) -> None:  # type: ignore[no-untyped-def]
    text = "kernel k(X: tensor<i64>[1]) {\n  var n = 0\n  while true {\n    n += 1\n  }\n  X[0] = n\n}\n"
    code, out, _ = phobos_run(text, "--arg", "X=zeros", "--timeout", "0.05", "--grid", "1")
    assert code == 1 and "timeout: the run did not end within 0.05 s" in out


def test_the_plan_alone(phobos_run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = phobos_run(HANG, "--set", "N=8", "--arg", "X=zeros", "--resident", "5", "--plan")
    assert code == 0 and "plan for hang" in out and "5 blocks" in out and "as asked for" in out and "sha256" not in out


def test_repeats_schedulers_and_residency_change_nothing(phobos_run) -> None:  # type: ignore[no-untyped-def]
    words = ("--set", "N=300", "--arg", "X=random", "--arg", "Y=random", "--arg", "alpha=2", "--json")
    flat = json.loads(phobos_run(SAXPY, *words)[1])["outputs"]
    for more in (
        ("--schedule", "flat"), ("--repeat", "3"),
        ("--scheduler", "random", "--seed", "0"), ("--scheduler", "adversarial"), ("--resident", "2"),
    ):  # fmt: skip
        code, out, _ = phobos_run(SAXPY, *words, *more)
        assert code == 0 and json.loads(out)["outputs"] == flat, more


def test_auto_says_which_device_and_why(phobos_run, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    import phobos.runtime.device as devices

    monkeypatch.setattr(devices, "driver", lambda: (0, "no CUDA driver is installed"))
    words = ("--set", "N=8", "--arg", "X=ones", "--arg", "Y=ones", "--arg", "alpha=1")
    code, out, _ = phobos_run(SAXPY, *words, device="auto")
    assert code == 0 and out.startswith("saxpy on cpu (reference runtime: no CUDA driver is installed)")
    code, _, err = phobos_run(SAXPY, *words, device="cuda")
    assert code == 2 and "no such device cuda: no CUDA driver is installed" in err


# --- bad input ------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "Q=4"), "no parameter, extent or constant `Q`"),
        (("--set", "N"), "'N' is not NAME=INT"),
        (("--set", "N=x"), "not an integer"),
        (("--set", "N=-4"), "cannot be negative"),
        (("--grid", "\N{SUPERSCRIPT TWO}"), "is no grid"),
        (("--device", "cuda:\N{SUPERSCRIPT TWO}"), "is no device"),
        (("--arg", "X=random:seed=\N{SUPERSCRIPT TWO}"), "only `random:seed=N` may follow"),
        (("--cluster", "local:\N{SUPERSCRIPT TWO}", "--shard", "N"), "--cluster"),
        (("--set", "N=99999999999999"), "would take"),
        (("--arg", "X"), "'X' is not NAME=VALUE"),
        (("--arg", "X=rnd"), "cannot read 'rnd' for tensor `X`"),
        (("--arg", "X=zeros:seed=3"), "cannot read 'zeros:seed=3'"),
        (("--arg", "X=@none.npy"), "none.npy: no such file"),
        (("--arg", "X=@k.ph"), "neither a .npy nor a .npz file"),
        (("--arg", "X=@objects.npy"), "objects.npy: holds pickled objects, which are not read"),
        (("--arg", "X=@objects.npz:X"), "objects.npz: holds pickled objects, which are not read"),
        (("--arg", "X=@text.npz:X"), "text.npz: `X` is no array"),
        (("--arg", "X=@changed.npz:X"), "changed.npz: cannot be read as an array: Bad CRC-32"),
        (("--arg", "X=@short.npz:X"), "short.npz: cannot be read as an array: "),
        (("--arg", "X=@x.npz"), "x.npz: holds several arrays (X): write @x.npz:NAME"),
        (("--arg", "X=@x.npz:Y"), "x.npz: has no array `Y` (it has X)"),
        (("--arg", "X=@x.npy.npz:X"), "x.npy.npz: is one array, leave `:X` out"),
        (("--arg", "X=@head.npy"), "head.npy: cannot be read as an array: Header info length"),
        (("--arg", "X=@magic.npz"), "magic.npz: is neither a .npy nor a .npz file"),
        (("--arg", "X=@/dev/zero"), "/dev/zero: is neither a file nor a link to one"),
        (("--arg", "X=@."), "is a directory"),
        (("--arg", "alpha=q"), "parameter `alpha` is 'q', the kernel declares f32"),
        (("--set", "N=8", "--arg", "X=@x.npy"), "`N` is 8, but axis 0 of `X` (@x.npy) is 5"),
        (("--set", f"N={1 << 63}"), "does not fit in 64 bits"),
        (("--kernel", ""), "is no name of a kernel"),
        (("--kernel", "saxpy+"), "is no name of a kernel"),
        (("--schedule", ""), "phobos: error: no schedule is called ''"),
        (("--arg", "X=@"), "`@` needs the name of a .npy or .npz file"),
        (("--out", "Y=/dev/full"), "phobos: error: /dev/full: cannot be written: No space left"),
        (("--arg", "X=@wide.npy"), "holds f64, the kernel declares tensor<f32>[N]"),
        (("--kernel", "other"), "no kernel `other`"),
        (("--grid", "0"), "'0' is no grid"),
        (("--grid", "1,2,3,4"), "is no grid"),
        (("--timeout", "soon"), "no number of seconds"),
        (("--detect", "everything"), "cannot be detected"),
        (("--out", "Z=z.npy"), "no tensor `Z`"),
        (("--out", "Y=none/y.npy"), "there is no directory"),
        (("--out", "Y=y.npz"), "saved as .npy"),
        (("--out", "Y=y.npy", "--out", "Y=z.npy"), "--out: Y is given twice"),
        (("--set", "N=4", "--set", "N=4"), "--set: N is given twice"),
        (("--arg", "X=zeros", "--arg", "X=ones"), "--arg: X is given twice"),
        (("--out", "Y=y.npy", "--out", "X=./y.npy"), "--out Y and --out X both write ./y.npy"),
        (("--schedule", "wild"), "no schedule is called 'wild'"),
        (("--l2-group", "0"), "at least 1"),
        (("--resident", "0"), "at least 1"),
    ],
)
def test_bad_options_are_one_clear_line_and_exit_2(
    phobos_run, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:  # type: ignore[no-untyped-def]
    np.save(tmp_path / "x.npy", np.zeros(5, np.float32))
    np.save(tmp_path / "wide.npy", np.zeros(8))
    objects = np.array([{}], dtype=object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "objects.npz", X=objects)
    np.savez(tmp_path / "x.npz", X=np.zeros(8, np.float32))
    (tmp_path / "x.npy.npz").write_bytes((tmp_path / "x.npy").read_bytes())
    (tmp_path / "changed.npz").write_bytes((tmp_path / "x.npz").read_bytes().replace(b"\0" * 32, b"\1" * 32))
    (tmp_path / "magic.npz").write_bytes(b"PK")
    (tmp_path / "head.npy").write_bytes(b"\x93NUMPY\1\0" + (20_000).to_bytes(2, "little") + b" " * 20_000)
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("X.npy", "no array")
    with zipfile.ZipFile(tmp_path / "short.npz", "w") as archive:
        archive.writestr("X.npy", (tmp_path / "x.npy").read_bytes()[:-4])
    text = "// run: N=8 X=ones Y=ones alpha=1\n" + SAXPY
    code, out, err = phobos_run(text, *words)
    assert code == 2 and said in err and out == ""
    assert len([line for line in err.splitlines() if "--help" not in line]) == 1


@pytest.mark.parametrize("missing", ["N", "X", "alpha"])
def test_what_is_not_given_is_asked_for_by_name(phobos_run, missing: str) -> None:  # type: ignore[no-untyped-def]
    given = {"N": "8", "X": "ones", "Y": "ones", "alpha": "1"}
    del given[missing]
    text = "// run: " + " ".join(f"{name}={held}" for name, held in given.items()) + "\n" + SAXPY
    code, _, err = phobos_run(text)
    assert code == 2 and f"`{missing}`" in err and "is not given" in err


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_text(""), "is empty"),
        (lambda path: path.write_bytes(bytes(range(256))), "not UTF-8"),
        (lambda path: path.write_text("x = 1\n" * 170_000), "no kernel that can be read"),
        (lambda path: path.write_text(SAXPY + SAXPY.replace("saxpy", "other")), "several kernels (saxpy, other)"),
    ],
    ids=["missing", "directory", "empty", "binary", "megabyte", "several"],
)
def test_bad_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], make, said: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "f.ph"
    make(path)
    assert main(["run", str(path), "--device", "cpu"]) == 2
    out = capsys.readouterr()
    assert said in out.err and out.out == "" and len(out.err.splitlines()) == 1


def test_a_file_of_a_megabyte_with_a_kernel_runs(phobos_run) -> None:  # type: ignore[no-untyped-def]
    text = "// run: N=8 X=ones Y=ones alpha=1\n" + SAXPY + "// filler\n" * 100_000
    assert phobos_run(text)[0] == 0

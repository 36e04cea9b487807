"""`phobos check` as it is called: options, exit codes, what is printed and what is changed."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from phobos.check import findings
from phobos.check.configuration import forget
from phobos.cli import main
from phobos.syntax.lines import LineIndex
from tests.command import HEARS_CTRL_C

BAD = """@persistent
kernel leader(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  if p == 0 {
    X[0 :+ 32] = X[0 :+ 32] + 1.0
    grid_barrier(BAR)
  }
}
"""
WARNED = """kernel unused(X: tensor<f32>[N]) {
  let a = 3
  X[ctx.block.x * 64 :+ 64] = 1.0
}
"""
NOTED = """kernel old(X: tensor<f32>[N]) {
  X[program_id(0) * 64 :+ 64] = 1.0
}
"""
CLEAN = """kernel fine(X: tensor<f32>[N]) {
  X[ctx.block.x * 64 :+ 64] = 1.0
}
"""
FIXABLE = "@persistent(48)\n" + CLEAN.replace("ctx.block.x", "program_id(0)")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    forget()
    (tmp_path / ".git").mkdir()
    for name, text in {"bad": BAD, "warned": WARNED, "noted": NOTED, "clean": CLEAN}.items():
        (tmp_path / f"{name}.ph").write_text(text)
    return tmp_path


class Run:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        forget()
        code = main(["check", *words])
        out = self.capsys.readouterr()
        assert "Traceback" not in out.err
        return code, out.out, out.err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


# --- exit codes and severities ------------------------------------------------------------------------


def test_exit_codes(run: Run) -> None:
    assert run("clean.ph")[0] == 0
    assert run("noted.ph")[0] == 0
    assert run("warned.ph")[0] == 1
    assert run("bad.ph")[0] == 1
    assert run("bad.ph", "--exit-zero")[0] == 0
    assert run("warned.ph", "--fail-on", "error")[0] == 0
    assert run("noted.ph", "--fail-on", "info")[0] == 1


def test_the_severity_that_is_shown(run: Run) -> None:
    assert "PH112" in run("warned.ph")[1]
    assert "PH112" not in run("warned.ph", "--severity", "error")[1]
    _, out, _ = run("noted.ph")
    assert "PH601" not in out and out.endswith("1 note hidden: `--severity info` shows it.\n")
    assert "PH601" in run("noted.ph", "--severity", "info")[1]
    assert json.loads(run("noted.ph", "--output-format", "json")[1])[0]["code"] == "PH601"
    assert json.loads(run("noted.ph", "--output-format", "json", "--severity", "warning")[1]) == []


def test_hidden_findings_count_for_the_exit_code_and_are_not_called_good(run: Run) -> None:
    code, out, _ = run("warned.ph", "--severity", "error")
    assert code == 1 and out == (
        "Nothing to show in 1 file checked, but 1 hidden finding fails the check."
        " 1 warning hidden: `--severity warning` shows it.\n"
    )
    code, out, _ = run("warned.ph", "--severity", "error", "--fail-on", "error")
    assert code == 0 and out.startswith("All good: 1 file checked. 1 warning hidden")
    assert "1 warning and 1 note hidden: `--severity info` shows them." in run(".", "--severity", "error")[1]


def test_a_constant_set_to_what_no_length_can_be(run: Run, folder: Path) -> None:
    (folder / "tiled.ph").write_text(
        "@autotune(T in [64], ROUNDS in [1])\nkernel k(X: tensor<f32>[M, N], n: i32) {\n"
        "  for _i in range(0, ROUNDS) {\n    X[0 :+ 1, ctx.block.x * T :+ T] = f32(n / ROUNDS)\n  }\n}\n"
    )
    for value in ("0", "-4"):
        code, out, _ = run("tiled.ph", "--set", f"T={value}")
        assert code == 1 and out.splitlines()[0] == (
            f"tiled.ph:1:11: error[PH403] `T` is set to {value}, and it is a length"
        )
        assert "Found 1 error in" in out, "and nothing follows from it"
    assert "set to 0, and it is a divisor" in run("tiled.ph", "--set", "ROUNDS=0")[1]
    assert run("tiled.ph", "--set", "ROUNDS=-2")[0] == 0
    assert run("tiled.ph", "--set", "T=128")[0] == 0


def test_selecting_rules(run: Run) -> None:
    assert run("bad.ph", "--select", "PH1")[0] == 0
    assert run("bad.ph", "--select", "PH2xx")[0] == 1
    assert run("bad.ph", "--select", "barrier-in-divergent-control-flow")[0] == 1
    assert run("bad.ph", "--ignore", "PH203")[0] == 0
    assert run("bad.ph", "--ignore", "PH2", "--extend-select", "PH203")[0] == 1
    assert run("bad.ph", "--select", "ALL", "--ignore", "PH203,PH5")[0] == 0


@pytest.mark.parametrize(
    "words, said",
    [
        (["missing.ph"], "no such file or directory"),
        (["claen.ph"], "did you mean clean.ph?"),
        (["kernel.py"], "kernels in Python spelling are not read"),
        (["--select", "PH999", "bad.ph"], "no rule is called `PH999`"),
        (["--ignore", "unusde", "bad.ph"], "did you mean `unused`?"),
        (["--kernel", "laeder", "bad.ph"], "did you mean `leader`?"),
        (["--target", "h2000", "bad.ph"], "unknown target `h2000`"),
        (["--config", "none.toml", "bad.ph"], "cannot read the configuration"),
        (["--config", "x.toml", "--isolated", "bad.ph"], "exclude each other"),
        (["--baseline", "none.json", "bad.ph"], "cannot read the baseline"),
        (["--set", "N", "bad.ph"], "'N' is not NAME=INT"),
        (["--set", "N=x", "bad.ph"], "is not an integer"),
        (["--set", "BER=3", "bad.ph"], "did you mean `BAR`?"),
        (["--set", "N=-4", "bad.ph"], "`N` is an extent of bad.ph, which cannot be -4"),
        (["--set", "N=4", "--set", "N=8", "bad.ph"], "N is given twice: 4 and 8"),
        (["--unsafe-fixes", "bad.ph"], "give one of them"),
        (["--order", "barrier", "bad.ph"], "--order is for a fusion"),
        (["--plot", "x.svg", "bad.ph"], "give both"),
        (["--write-baseline", "b.json", "--baseline", "b.json", "bad.ph"], "give one"),
        (["--write-baseline", "b.json", "--add-ignore", "bad.ph"], "give one"),
        (["--prove", "--add-ignore", "bad.ph"], "give one"),
        (["--diff", "--add-ignore", "bad.ph"], "--diff shows what --fix would change and does nothing else"),
        (["--diff", "--output-file", "x", "bad.ph"], "--diff shows what --fix would change and does nothing else"),
        (["--statistics", "--output-format", "sarif", "bad.ph"], "--statistics counts, and sarif lists findings"),
        (["link.ph"], "link.ph: is a link to nowhere.ph, which does not exist"),
        (["wide.ph"], "wide.ph:1: is UTF-16 text"),
        (["--jobs", "0", "bad.ph"], "not a whole number of at least 1"),
        (["--output-format", "xml", "bad.ph"], "invalid choice: 'xml'"),
        (["--frobnicate"], "unrecognized arguments"),
        (["-", "bad.ph"], "cannot be checked together"),
        (["--output-file", "no/such/x.json", "bad.ph"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_exit_2_and_says_why(run: Run, folder: Path, words: list[str], said: str) -> None:
    (folder / "kernel.py").write_text("x = 1\n")
    (folder / "link.ph").symlink_to("nowhere.ph")
    (folder / "wide.ph").write_bytes(BAD.encode("utf-16"))
    code, _, err = run(*words)
    assert code == 2 and said in err


def test_unreadable_files_do_not_keep_others_from_being_checked(run: Run, folder: Path) -> None:
    (folder / "binary.ph").write_bytes(b"kernel\xff\xfe")
    (folder / "zero.ph").write_bytes(b"kernel k\0")
    code, out, err = run(".")
    assert code == 2 and "PH203" in out
    assert "binary.ph:1: not UTF-8 text (byte 0xff at offset 6)" in err and "zero.ph:1: not a text file" in err


def test_what_could_not_be_read_shows_in_the_exit_code_of_every_way_out(run: Run, folder: Path) -> None:
    (folder / "binary.ph").write_bytes(b"kernel\xff\xfe")
    for words in (["--write-baseline", "known.json"], ["--add-ignore"], ["--diff"], ["--fix"]):
        code, _, err = run(".", *words)
        assert code == 2 and "binary.ph:1: not UTF-8 text" in err, words


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(run: Run, folder: Path) -> None:
    os.mkfifo(folder / "pipe.ph")
    assert "pipe.ph" not in run("--show-files", ".")[1]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are text there")
def test_a_file_name_that_is_no_text_is_named_in_every_form(run: Run, folder: Path) -> None:
    name = os.fsdecode(b"by\xffte.ph")
    (folder / name).write_text(BAD)
    for form in ("json", "json-lines", "gitlab", "junit", "sarif", "github", "concise", "full"):
        assert run(name, "--output-format", form, "--output-file", "report")[0] == 1, form
        assert b"by" in (folder / "report").read_bytes(), form
    run(name, "--output-format", "json", "--output-file", "report")
    assert json.loads((folder / "report").read_text(encoding="utf-8"))[0]["filename"] == name
    run(name, "--output-format", "sarif", "--output-file", "report")
    assert json.loads((folder / "report").read_text())["runs"][0]["artifacts"][0]["location"]["uri"] == "by%FFte.ph"
    assert run(name, "--write-baseline", "known.json")[0] == 0
    assert run(name, "--baseline", "known.json")[0] == 0


def test_a_closed_standard_output_costs_the_output_alone(folder: Path) -> None:
    for words, code in ((["check", "bad.ph"], 1), (["check", "clean.ph"], 0), (["rule", "PH205"], 0)):
        script = f"exec {sys.executable} -m phobos {' '.join(words)} >&-"
        ended = subprocess.run(["/bin/sh", "-c", script], cwd=folder, capture_output=True, text=True)
        assert ended.returncode == code and ended.stderr == "", words


def test_odd_inputs(run: Run, folder: Path) -> None:
    (folder / "empty.ph").write_text("")
    assert run("empty.ph")[0] == 0
    (folder / "bom.ph").write_bytes(b"\xef\xbb\xbf" + BAD.encode())
    assert run("bom.ph")[1].startswith("bom.ph:6:5: error[PH203]")
    (folder / "crlf.ph").write_bytes(BAD.replace("\n", "\r\n").encode())
    assert run("crlf.ph")[1].startswith("crlf.ph:6:5: error[PH203]")
    (folder / "none").mkdir()
    code, _, err = run("none")
    assert code == 2 and "no .ph files under none" in err


# --- which files ---------------------------------------------------------------------------------------


def test_directories_are_walked_and_gitignore_is_respected(run: Run, folder: Path) -> None:
    for name in ("a/one.ph", "a/build/two.ph", "a/kept/three.ph", ".venv/four.ph", "b/five.ph"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(CLEAN)
    (folder / "a/.#one.ph").symlink_to("someone@host.4711")  # what Emacs puts beside a file that is being changed
    (folder / ".gitignore").write_text("build/\nb/*.ph\n")
    (folder / "b/.gitignore").write_text("!five.ph\n")
    listed = run("--show-files", "a", "b", "a/one.ph")[1].split()
    assert listed == ["a/kept/three.ph", "a/one.ph", "b/five.ph"]
    assert run("--show-files", "a/build/two.ph")[1].split() == ["a/build/two.ph"]
    # As git reads it: lines that are no pattern, a byte order mark, ends of other systems, and no end but of a line.
    (folder / ".gitignore").write_bytes(b"\xef\xbb\xbfbuild/\r\n!\n\\\nb/*.ph\r\n\nx\x0ckept\n")
    assert run("--show-files", "a", "b", "a/one.ph")[1].split() == listed
    # Nothing but kernels, however deep: each folder is taken in again before what is below it.
    (folder / ".gitignore").write_text("*\n!*/\n!*.ph\nbuild/\n")
    (folder / "a/kept/build").write_text("no folder")
    assert run("--show-files", "a", "b")[1].split() == listed
    (folder / "phobos.toml").write_text('exclude = ["kept", "a/one.ph"]\n')
    assert run("--show-files", "a")[:2] == (0, "")
    assert run("--show-files", "b")[1].split() == ["b/five.ph"]


def test_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(BAD.encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    code, out, _ = run("-", "--stdin-filename", "kernels/leader.ph")
    assert code == 1 and out.startswith("kernels/leader.ph:6:5: error[PH203]")


def test_fixing_standard_input_prints_the_mended_text_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(FIXABLE.encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    code, out, err = run("-", "--fix")
    assert code == 1 and out == FIXABLE.replace("(48)", "").replace("program_id(0)", "ctx.block.x")
    assert "Fixed 2 findings" in err and "PH210" in err


def test_one_kernel(run: Run, folder: Path) -> None:
    (folder / "two.ph").write_text(BAD + WARNED)
    assert "PH112" not in run("two.ph", "--kernel", "leader")[1]
    assert "PH203" not in run("two.ph", "--kernel", "unused")[1]
    both = run("two.ph", "--kernel", "leader+unused")[1]
    assert "PH112" in both and "PH203" in both


def test_order_does_not_depend_on_the_number_of_processes(run: Run, folder: Path) -> None:
    for number in range(6):
        (folder / f"copy{number}.ph").write_text(BAD + WARNED)
    alone = run(".", "--severity", "info")
    assert run(".", "--severity", "info", "--jobs", "2") == alone
    places = [line.split(" ")[0] for line in alone[1].splitlines()[:-1]]
    assert places == sorted(places, key=lambda place: (place.split(":")[0], int(place.split(":")[1])))


# --- configuration -------------------------------------------------------------------------------------


def test_the_nearest_configuration_counts(run: Run, folder: Path) -> None:
    (folder / "phobos.toml").write_text('ignore = ["PH203"]\n')
    (folder / "sub").mkdir()
    (folder / "sub/bad.ph").write_text(BAD)
    assert run("bad.ph", "sub/bad.ph")[0] == 0
    (folder / "sub/pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert run("sub/bad.ph")[0] == 0
    (folder / "sub/pyproject.toml").write_text('[tool.phobos]\nselect = ["ALL"]\n')
    assert run("sub/bad.ph")[0] == 1
    assert run("bad.ph", "--isolated")[0] == 1
    assert run("bad.ph", "--config", "sub/pyproject.toml")[0] == 1


def test_every_key(run: Run, folder: Path) -> None:
    (folder / "phobos.toml").write_text(
        'select = ["ALL"]\nextend-select = ["PH601"]\nignore = ["PH112"]\nseverity = "info"\nfail-on = "error"\n'
        'target = ["h200"]\nsizes = { N = 4096 }\nknown-functions = ["mine"]\nline-length = 100\n'
        'exclude = ["old"]\nbaseline = "known.json"\n[per-file-ignores]\n"noted.ph" = ["PH601"]\n'
    )
    (folder / "known.json").write_text('{"version": 1, "files": {}}')
    code, out, _ = run(".")
    assert code == 1 and "PH112" not in out and "PH601" not in out and "PH203" in out
    shown = run("--show-settings", ".")[1]
    for line in (
        'severity = "info"',
        'fail-on = "error"',
        "sizes = { N = 4096 }",
        "line-length = 100",
        'target = ["h200"]',
    ):
        assert line in shown
    forget()
    (folder / "again.toml").write_text("\n".join(line for line in shown.splitlines() if not line.startswith("#")))
    assert run("--config", "again.toml", ".")[1] == out


@pytest.mark.parametrize(
    "text, line, said",
    [
        ('select = ["ALL"]\nselekt = ["ALL"]\n', 2, "did you mean `select`?"),
        ("\nselect = 3\n", 2, "must be a list of strings"),
        ('severity = "loud"\n', 1, 'must be "error", "warning" or "info"'),
        ("line-length = true\n", 1, "must be an integer from 20 to 1000"),
        ("sizes = { N = 1.5 }\n", 1, "must be an integer"),
        ("select = [\n", 2, "not valid TOML"),
        ('[per-file-ignores]\n"a.ph" = 3\n', 2, "must be a list of codes or names"),
        ("x = " + "[" * 10_000, 1, "nest too deep"),
        ("\nx = " + "9" * 10_000, 2, "too many digits"),
    ],
)
def test_a_bad_configuration_is_an_error_with_its_line(run: Run, folder: Path, text: str, line: int, said: str) -> None:
    (folder / "phobos.toml").write_text(text)
    code, _, err = run("clean.ph")
    assert code == 2 and f"phobos.toml:{line}: " in err and said in err


def test_a_project_file_whose_tools_are_no_table(run: Run, folder: Path) -> None:
    (folder / "pyproject.toml").write_text("tool = 3  # [tool.phobos]\n")
    assert "pyproject.toml:1: `tool` must be a table" in run("clean.ph")[2]


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 1, "files": ' + "[" * 100_000,
        '{"version": 1, "files": {"bad.ph": {"a": 1e999}}}',
        '{"version": 1, "files": {"bad.ph": {"a": "' + "9" * 5_000 + '"}}}',
        '{"version": 1, "files": []}',
        "[]",
    ],
)
def test_what_is_no_baseline_is_said_to_be_none(run: Run, folder: Path, text: str) -> None:
    (folder / "known.json").write_text(text)
    code, _, err = run("bad.ph", "--baseline", "known.json")
    assert code == 2 and "known.json: not a baseline" in err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_configuration_cannot_have_a_baseline_read_that_never_ends(run: Run, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for name in ("pipe", "/dev/zero"):
        forget()
        (folder / "phobos.toml").write_text(f'baseline = "{name}"\n')
        assert f"{name}: not a file, so no baseline" in run("bad.ph")[2]


def test_a_file_that_goes_on_and_on_is_not_read_to_its_end(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phobos.files.MOST_BYTES", 1 << 20)
    for name in ("known.json", "endless.ph", "phobos.toml", ".gitignore"):
        forget()
        (folder / name).write_text("// " + "x" * (1 << 20))
        words = ["bad.ph", "--baseline", name] if name == "known.json" else [name if name.endswith(".ph") else "."]
        code, _, err = run(*words)
        assert code == 2 and f"{name}: is larger than 1 MiB" in err
        (folder / name).unlink()


def test_an_unknown_rule_in_the_configuration_is_a_finding_there(run: Run, folder: Path) -> None:
    (folder / "phobos.toml").write_text('ignore = ["PH203", "PH999"]\n')
    code, out, _ = run("clean.ph")
    assert code == 1 and out.startswith("phobos.toml:1:21: warning[PH902] no rule is called `PH999`")


def test_a_target_that_nobody_knows_names_its_file(run: Run, folder: Path) -> None:
    (folder / "phobos.toml").write_text('severity = "info"\ntarget = ["h2000"]\n')
    code, _, err = run("clean.ph")
    assert code == 2 and "phobos.toml:2: `target`: unknown target `h2000`" in err
    (folder / "phobos.toml").write_text("[tool.phobos]\n")
    assert "phobos.toml:1: `tool` is not a key of the configuration; `[tool.phobos]` is for pyproject" in run(".")[2]
    (folder / "phobos.toml").write_bytes(b"# fine\n# \xff\n")
    assert "phobos.toml:2: the configuration is not UTF-8 text" in run(".")[2]


def test_sizes_and_constants_from_options(run: Run, folder: Path) -> None:
    (folder / "size.ph").write_text("@aligned(N = 64)\n" + CLEAN)
    assert run("size.ph")[0] == 0
    assert run("size.ph", "--set", "N=1024")[0] == 0
    assert "PH303" in run("size.ph", "--set", "N=1000")[1]


# --- changing files -------------------------------------------------------------------------------------


def test_fix_until_nothing_changes(run: Run, folder: Path) -> None:
    path = folder / "fix.ph"
    path.write_text(FIXABLE)
    code, out, _ = run("fix.ph", "--diff")
    assert code == 1 and "-@persistent(48)" in out and "+@persistent" in out and path.read_text() == FIXABLE
    code, out, err = run("fix.ph", "--fix")
    assert "Fixed 2 findings in 1 file: PH209 and PH601." in err
    assert path.read_text() == FIXABLE.replace("(48)", "").replace("program_id(0)", "ctx.block.x")
    assert run("fix.ph", "--fix")[2] == ""
    assert run("fix.ph", "--diff")[:2] == (0, "")


def test_unsafe_fixes_only_when_asked_for(run: Run, folder: Path) -> None:
    text = BAD.replace("@persistent\n", "")
    (folder / "unsafe.ph").write_text(text)
    run("unsafe.ph", "--fix")
    assert (folder / "unsafe.ph").read_text() == text
    run("unsafe.ph", "--fix", "--unsafe-fixes")
    assert (folder / "unsafe.ph").read_text() == BAD


def test_fix_keeps_line_ends_marks_and_modes(run: Run, folder: Path) -> None:
    path = folder / "fix.ph"
    path.write_bytes(b"\xef\xbb\xbf" + FIXABLE.replace("\n", "\r\n").encode())
    path.chmod(0o640)
    run("fix.ph", "--fix")
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf@persistent\r\n") and data.count(b"\r\n") == data.count(b"\n")
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith(".phobos")) == []


def test_add_ignore_silences_and_is_kept_up(run: Run, folder: Path) -> None:
    text = BAD + WARNED.replace("let a = 3", "let a = 3  // three")
    (folder / "many.ph").write_text(text)
    code, out, _ = run("many.ph", "--add-ignore")
    assert code == 0 and "Silenced 2 findings in 1 file" in out
    changed = (folder / "many.ph").read_text()
    assert "grid_barrier(BAR)  // phobos: ignore[PH203]\n" in changed
    assert "  // phobos: ignore[PH112]\n  let a = 3  // three\n" in changed
    assert run("many.ph")[0] == 0
    (folder / "broken.ph").write_text(WARNED.replace("[ctx", "[[ctx"))
    code, out, _ = run("broken.ph", "--add-ignore")
    assert code == 1 and "To be mended, not silenced, is 1 finding: broken.ph:3 (PH001).\n" in out
    assert run("broken.ph", "--add-ignore", "--exit-zero")[0] == 0


def test_a_baseline_survives_moved_lines_and_sees_new_findings(run: Run, folder: Path) -> None:
    assert run("bad.ph", "--write-baseline", "known.json")[1] == "Wrote 1 finding to known.json.\n"
    assert run("bad.ph", "--baseline", "known.json")[0] == 0
    moved = "// a comment\n\n" + WARNED.replace("let a = 3", "let _a = 3") + BAD.replace("    grid", "      grid")
    moved = moved.replace("grid_barrier(BAR)", "grid_barrier(BAR)  // said anew")
    (folder / "bad.ph").write_text(moved)
    code, out, _ = run("bad.ph", "--baseline", "known.json")
    assert code == 0 and "1 finding in the baseline" in out
    twice = moved.replace("    X[0 :+ 32]", "    if p == 0 {\n      grid_barrier(BAR)\n    }\n    X[0 :+ 32]")
    (folder / "bad.ph").write_text(twice)
    assert run("bad.ph", "--baseline", "known.json")[0] == 1
    (folder / "known.json").write_text("[1]")
    assert run("bad.ph", "--baseline", "known.json")[0] == 2


def test_a_configured_baseline_can_be_made_and_made_anew(run: Run, folder: Path) -> None:
    (folder / "phobos.toml").write_text('baseline = "known.json"\n')
    assert "`--write-baseline` makes one" in run(".")[2]
    assert run(".", "--write-baseline", "known.json")[:2] == (0, "Wrote 2 findings to known.json.\n")
    (folder / "new.ph").write_text(WARNED.replace("unused", "newer"))
    assert run(".")[0] == 1
    assert run(".", "--write-baseline", "known.json")[1] == "Wrote 3 findings to known.json.\n"
    assert run(".")[0] == 0


def test_statistics(run: Run) -> None:
    code, out, _ = run(".", "--statistics")
    assert code == 1 and out.splitlines()[0].split()[:2] == ["1", "PH112"]
    counted = json.loads(run(".", "--statistics", "--output-format", "json")[1])
    assert {
        "code": "PH203",
        "name": "barrier-in-divergent-control-flow",
        "severity": "error",
        "count": 1,
        "fixable": 0,
    } in counted


# --- the same for everybody ------------------------------------------------------------------------------


def test_command_server_and_python_have_one_truth(run: Run) -> None:
    import phobos

    text = BAD + WARNED + NOTED
    Path("all.ph").write_text(text)
    printed = json.loads(run("all.ph", "--output-format", "json")[1])
    lines = LineIndex(text)
    known = findings("all.ph", text)
    assert known and [d.code for d in known] == [d.code for d in phobos.check(text)]
    assert [
        (p["code"], p["severity"], p["message"], p["location"]["row"], p["location"]["column"], len(p["related"]))
        for p in printed
    ] == [
        (d.code, d.severity, d.message, *(n + 1 for n in lines.position(d.span.start)), len(d.related)) for d in known
    ]


def test_output_formats_by_surroundings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("bad.ph")[1].startswith("bad.ph:6:5: error[PH203]")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert run("bad.ph")[1].startswith("::error title=PH203")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert run("bad.ph")[1].startswith("error[PH203]: ")
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm")
    assert run("bad.ph")[1].startswith("\x1b[1;31merror[PH203]")
    assert run("bad.ph", "--no-color")[1].startswith("error[PH203]: ")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert run("bad.ph", "--output-file", "out.txt")[1] == ""


def child(*words: str, **options: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    return subprocess.Popen(
        [*HEARS_CTRL_C, sys.executable, "-m", "phobos", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        **options,  # type: ignore[call-overload]
    )


def test_a_console_that_cannot_encode_gets_replacements(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "wide.ph").write_text(BAD.replace("let p = ctx.block.x", "let p = ctx.block.x  // Größe 大"))
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    out, err = child("check", "wide.ph", "--output-format", "full").communicate()
    assert b"Gr??e ?" in out and err == b""


def test_a_closed_pipe_is_quiet() -> None:
    with child("check", ".", "--output-format", "json") as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_watch_checks_again_and_ctrl_c_ends_it(folder: Path) -> None:
    process = child("check", "clean.ph", "--watch")
    assert process.stdout is not None and process.stderr is not None
    out = process.stdout
    os.set_blocking(out.fileno(), False)
    seen = b""

    def wait_for(word: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 30
        while word not in seen and time.monotonic() < end:
            seen += out.read() or b""
            time.sleep(0.02)
        assert word in seen

    with process:
        try:
            wait_for(b"waiting for changes")
            (folder / "clean.ph").write_text(BAD)
            wait_for(b"PH203")
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert b"Traceback" not in process.stderr.read()
        finally:
            process.kill()


# --- the command itself ----------------------------------------------------------------------------------


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    from phobos import __version__
    from phobos.cli import available

    assert main(["--version"]) == 0 and capsys.readouterr().out == f"phobos {__version__}\n"
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for command in available():
        assert f"  {command} " in shown
        assert main([command, "--help"]) == 0
        text = capsys.readouterr().out
        assert f"usage: phobos {command}" in text and "example:" in text, command
        assert main([command, "--version"]) == 0
        capsys.readouterr()
    assert main([]) == 2
    assert main(["chek"]) == 2 and "did you mean `phobos check`?" in capsys.readouterr().err
    assert main(["explain"]) == 2 and "did you mean `phobos rule`?" in capsys.readouterr().err
    assert main(["bad.ph"]) == 2 and "phobos check bad.ph" in capsys.readouterr().err
    assert main(["--no-color", "check", "clean.ph"]) == 0


def test_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", "PH205"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# PH205 barrier-trip-count-varies") and "## Why it is bad" in page
    assert main(["rule", "barrier-trip-count-varies", "--output-format", "markdown"]) == 0
    assert capsys.readouterr().out == page
    assert main(["rule", "--all", "--output-format", "json"]) == 0
    pages = json.loads(capsys.readouterr().out)
    keys = {"code", "name", "severity", "severities", "summary", "sections", "examples", "url"}
    assert len(pages) == 74 and keys == set(pages[0])
    assert [page["severities"] for page in pages if page["code"] == "PH219"] == [["error", "warning", "info"]]
    assert main(["rule", "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 74
    assert main(["rule", "PH219"]) == 0 and "Severity: error or warning or info." in capsys.readouterr().out
    assert main(["rule", "PH9"]) == 0
    assert [line[:5] for line in capsys.readouterr().out.splitlines()] == ["PH901", "PH902", "PH903"]
    assert main(["rule", "PH9", "--output-format", "json"]) == 0
    assert [page["code"] for page in json.loads(capsys.readouterr().out)] == ["PH901", "PH902", "PH903"]
    assert main(["rule", "barrier-trip-count"]) == 2
    assert "did you mean `barrier-trip-count-varies`?" in capsys.readouterr().err
    assert main(["rule"]) == 2 and main(["rule", "PH205", "--all"]) == 2

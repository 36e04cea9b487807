"""What SECURITY.md promises: hostile text runs nothing, opens nothing, and cannot break out of the generated CUDA."""

from __future__ import annotations

import ast
import os
import pickle
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from phobos.cli import main
from phobos.codegen import cache, nvrtc
from phobos.codegen.spelling import file_literal
from phobos.runtime.tuning import keeping, space

HOUSE = Path(__file__).resolve().parents[2]

# Who may start a process, open a connection or read a pickle, and why.
OUTSIDE = {
    "cli/emit.py": "disassembles a cubin with the toolkit's own program, found by its fixed name",
    "lsp/children.py": "phobos emit and phobos run, when the user asks",
    "lsp/proving.py": "phobos check --prove, when the user asks",
    "lsp/worker.py": "pickles from its own parent alone",
    "lsp/workers.py": "this package's own worker",
    "runtime/tuning/executor.py": "this package's own worker",
    "runtime/tuning/worker.py": "pickles from its own parent alone",
}


def test_nothing_in_the_analysis_can_start_a_process_or_reach_the_network() -> None:
    reaching: set[str] = set()
    for path in sorted((HOUSE / "phobos").rglob("*.py")):
        name = str(path.relative_to(HOUSE / "phobos"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                named = [node.module or ""]
            if any(re.match(r"(subprocess|socket|urllib\.request|http|ftplib|smtplib|requests|pickle|shelve"
                            r"|webbrowser|asyncio\.subprocess)(\.|$)", word) for word in named):  # fmt: skip
                reaching.add(name)
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("eval", "os.system", "os.popen", "numpy.fromstring"), f"{name}:{node.lineno}"
                assert called != "exec" or name == "value.py", f"{name}:{node.lineno}"
                if called.endswith((".load", "np.load", "numpy.load")) and "np" in called.split(".")[0]:
                    assert any(k.arg == "allow_pickle" and ast.unparse(k.value) == "False" for k in node.keywords)
    assert reaching == set(OUTSIDE)


def test_an_array_file_with_a_pickle_in_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    witness = tmp_path / "ran"

    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(witness),)

    numpy.save(tmp_path / "x.npy", numpy.array([Bomb()], dtype=object), allow_pickle=True)
    (tmp_path / "raw.npy").write_bytes(pickle.dumps(Bomb()))
    (tmp_path / "k.ph").write_text("kernel k(X: tensor<f32>[N]) { X[0] = 1.0 }\n")
    for file in ("x.npy", "raw.npy"):
        assert main(["run", str(tmp_path / "k.ph"), "--device", "cpu", "--arg", f"X=@{tmp_path / file}"]) == 2
        said = capsys.readouterr().err
        assert file in said and "Traceback" not in said
    assert not witness.exists()


HOSTILE_PATHS = [
    'a".cu',
    "a\n#error out\n.ph",
    "a\\",
    "a\r#error out",
    "a\u2028#error out",
    "??/a",
    "\x00a",
    'é"\n#include "/etc/passwd"\n',
]


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_a_path_cannot_end_its_line_in_the_generated_text(path: str) -> None:
    literal = file_literal(path)
    assert re.fullmatch(r'"[^"\\\n\r]*"', literal) and literal.isascii() and "??" not in literal
    nvrtc.compile_text(f'#line 1 {literal}\nextern "C" __global__ void k() {{}}\n', "k.cu", "sm_80")


def test_names_and_literals_cannot_break_out_of_the_generated_text(tmp_path: Path) -> None:
    """Names of C++, of the runtime's own and from other alphabets; numbers at the ends of their types."""
    names = ["asm", "__asm__", "ph_store", "threadIdx", "größe", "ˮ", "N_1", "volatile", "main", "_", "__global__"]
    taken = [name for name in names if re.fullmatch(r"[^\W\d]\w*", name)]
    lines = [f"  let {name} = ctx.block.x + {number}" for number, name in enumerate(taken)]
    lines += [f"  X[{' + '.join(taken)}] = 3.5e38 + 1e-46 + 0.0"]
    text = "kernel __device__(X: tensor<f32>[auto]) {\n" + "\n".join(lines) + "\n}\n"
    from phobos.check import check

    wrong = [found for found in check(text) if found.severity == "error"]
    assert not wrong, wrong
    (tmp_path / "k.ph").write_text(text, encoding="utf-8")
    for form in ("cuda", "cubin"):
        assert main(["emit", str(tmp_path / "k.ph"), "--format", form, "-o", str(tmp_path / form)]) == 0
    emitted = (tmp_path / "cuda").read_text(encoding="utf-8")
    assert emitted.isascii() and "asm;" not in emitted and not re.search(r"\basm\b\s*=", emitted)


def test_kept_kernels_are_private(tmp_path: Path) -> None:
    (tmp_path / "k.ph").write_text("kernel k(X: tensor<f32>[N]) { X[0] = 1.0 }\n")
    kept = tmp_path / "kept"
    environment = {**os.environ, "PHOBOS_CACHE": str(kept), "PYTHONPATH": str(HOUSE)}
    before = os.umask(0)
    try:
        subprocess.run(
            [sys.executable, "-m", "phobos", "occupancy", str(tmp_path / "k.ph"), "--target", "a100"],
            check=True, env=environment, capture_output=True,
        )  # fmt: skip
    finally:
        os.umask(before)
    places = [kept, *kept.rglob("*")]
    assert len(places) > 1
    for place in places:
        assert stat.S_IMODE(place.stat().st_mode) & 0o077 == 0, place


def test_what_others_could_have_put_there_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path))
    card = "the card"
    cache.keep_verdict("0" * 64, ("PH203",))
    winner = keeping.Winner(space.Variant(), {}, None, {"N": 8}, 1.0, 2.0, "2026-11-30")
    assert keeping.keep_winner("k" * 32, "k", card, winner) is not None
    for folder in (cache.folder(), keeping.folder()):
        assert cache.is_writable(folder)
        folder.chmod(0o777)
        assert not cache.is_writable(folder)
    assert cache.verdict("0" * 64) is None and keeping.winners("k" * 32, card) == ()
    cache.keep_verdict("1" * 64, ("PH203",))
    assert keeping.keep_winner("q" * 32, "q", card, winner) is None
    for folder in (cache.folder(), keeping.folder()):
        folder.chmod(0o700)
    assert cache.verdict("0" * 64) == ("PH203",) and len(keeping.winners("k" * 32, card)) == 1
    assert cache.verdict("1" * 64) is None, "nothing was written there"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_the_server_waits_for_no_pipe_that_a_message_names(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ph")
    (tmp_path / "k.ph").write_text("kernel k() {}\n")
    program = (
        "import sys; from phobos.lsp.session import Session\n"
        "print([Session().document(uri) is None for uri in sys.argv[1:]])"
    )
    uris = [(tmp_path / name).as_uri() for name in ("pipe.ph", "k.ph")]
    done = subprocess.run(
        [sys.executable, "-c", program, *uris], cwd=HOUSE, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "[True, False]\n", done.stderr


def test_the_server_listens_on_loopback_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lsp", "--tcp", "0.0.0.0:0"]) == 2
    assert "loopback" in capsys.readouterr().err


HOSTILE_NAMES = ("::error::a.ph", "b\n::error::\x1b[31m\u202e.ph", "c\r::stop-commands::x.ph")
SAYING = {
    "check, concise": ["check", ".", "--output-format", "concise"],
    "check, full": ["check", ".", "--output-format", "full"],
    "check, GitHub": ["check", ".", "--output-format", "github"],
    "check --diff": ["check", ".", "--diff"],
    "check --show-files": ["check", ".", "--show-files"],
    "check --show-settings": ["check", ".", "--show-settings"],
    "check --statistics": ["check", ".", "--statistics"],
    "check, no such file": ["check", "no\n::error::such"],
    "check, a hostile option": ["check", "--no\n::error::such"],
    "check, a hostile key": ["check", "x.ph", "--config", "keys.toml"],
    "fmt --check": ["fmt", "--check", "."],
    "fmt --diff": ["fmt", "--diff", "."],
    "run": ["run", HOSTILE_NAMES[1], "--device", "cpu"],
    "run, a hostile array": ["run", "x.ph", "--device", "cpu", "--arg", "X=@x.npz"],
    "emit": ["emit", HOSTILE_NAMES[1], "--format", "cuda"],
    "occupancy": ["occupancy", HOSTILE_NAMES[1], "--target", "a100"],
}


@pytest.mark.parametrize("words", SAYING.values(), ids=SAYING)
def test_names_and_texts_steer_neither_terminal_nor_ci_server(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No control character comes out, and no line begins as GitHub's runner wants commands to itself to begin."""
    monkeypatch.chdir(tmp_path)
    text = "kernel k(X: tensor<f32>[N]) {\n  X[program_id(0)] = \x1b[2Jq // \x07\n  \x1b]0;title\x07\n}\n"
    for name in HOSTILE_NAMES:
        (tmp_path / name).write_text(text if name == HOSTILE_NAMES[1] else "kernel k( ) { let  p = q }\n")
    (tmp_path / "x.ph").write_text("kernel k(X: tensor<f32>[N]) { X[program_id(0)] = 1.0 }\n")
    (tmp_path / "keys.toml").write_text('"\\u001b[31m\\n::error::a key" = 1\n')
    numpy.savez(tmp_path / "x.npz", **{"\x1b[31m\n::error::an array": numpy.zeros(4)})
    assert main(words) in (0, 1, 2)
    out, err = capfd.readouterr()
    assert out + err
    for line in (out + err).split("\n"):
        if "--diff" in words and not line.startswith(("---", "+++")):
            continue  # a document: it holds the text as it is
        if words[-1] == "github":  # our own commands, whose file names are encoded
            line = re.sub(r"^::(error|warning|notice) title=PH\d{3} [^:]*::", "our own: ", line)
        assert line.isprintable() and not line.lstrip().startswith("::"), repr(line)


def test_modules_of_the_folder_that_is_open_do_not_run(tmp_path: Path) -> None:
    """A server in a folder that holds modules by the names of ours and of Python's, and a check in many processes."""
    witness = tmp_path / "ran"
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("phobos", "json", "pickle", "asyncio", "multiprocessing", "lark"):
        (folder / f"{name}.py").write_text(f"open({str(witness)!r}, 'a').write({name!r})\n")
    for number in range(3):
        (folder / f"k{number}.ph").write_text("kernel k(X: tensor<f32>[N]) { X[0] = 1.0 }\n")
    program = tmp_path / "program.py"  # its folder is what it looks into, as that of a console script is
    program.write_text(
        "import asyncio, multiprocessing, sys\n"
        "from types import SimpleNamespace\n"
        "from phobos.cli import main\n"
        "from phobos.lsp.children import phobos\n"
        "if __name__ == '__main__':\n"
        "    document = SimpleNamespace(path='k0.ph', uri='k0.ph')\n"
        "    print(asyncio.run(phobos(['--version'], 'k0.ph', document)).output)\n"
        "    multiprocessing.set_start_method('forkserver')\n"  # what Python 3.14 does by itself
        "    sys.exit(main(['check', '.', '--jobs', '2']))\n"
    )
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=folder, env={**environment, "PYTHONPATH": str(HOUSE)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "phobos 0" in done.stdout and "3 files checked" in done.stdout, done.stdout + done.stderr
    assert not witness.exists(), witness.read_text()
    starting = [path.name for path in (HOUSE / "phobos").rglob("*.py") if "sys.executable" in path.read_text("utf-8")]
    assert starting == ["processes.py"]

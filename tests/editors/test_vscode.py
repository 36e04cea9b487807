"""VS Code itself in a real browser, with the packaged extension in an empty profile.

The interpreter that the extension is given has numpy and ml-dtypes but no `phobos`, so that what answers is the server
inside the .vsix. The scripts in vscode/ do what a user does and write down what they saw; it is judged here. Pictures
are kept in build/pictures.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.editors.parts import ROOT, browser, code_server, node_environment, npm_folder, vsix
from tests.editors.test_neovim import FIXABLE, HANG

SCRIPTS = Path(__file__).parent / "vscode"
PICTURES = ROOT / "build" / "pictures"
PLAIN = """\
// run: kernel=total N=4096 X=ones OUT=zeros
@autotune(TILE in [1024])
kernel total(X: tensor<f32>[1, N], OUT: tensor<f32>[1, 1]) {
  var sum: tile<f32>[1, 1] = 0.0
  for t in range(0, N, TILE) {
    let x = X[0 :+ 1, t :+ TILE] * 2.0
    sum += rowsum(x)
  }
  OUT[0 :+ 1, 0 :+ 1] = sum
}
"""
LOOSE = "kernel   loose( X:tensor<f32>[ N ] ){\nX[0:+4]=X[0:+4]*2.0\n}\n"
USER = {
    "workbench.startupEditor": "none", "telemetry.telemetryLevel": "off", "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False, "extensions.ignoreRecommendations": True, "chat.disableAIFeatures": True,
    "workbench.secondarySideBar.defaultVisibility": "hidden", "files.hotExit": "off", "files.autoSave": "off",
    "terminal.integrated.gpuAcceleration": "off", "window.commandCenter": False, "editor.minimap.enabled": False,
    "workbench.tips.enabled": False, "task.autoDetect": "on", "editor.accessibilitySupport": "off",
}  # fmt: skip


def plain_python(folder: Path, packages: tuple[str, ...]) -> Path:
    """An interpreter of this version that has these packages of ours, and no `phobos`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    where = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
    for package in packages:
        module = __import__(package)
        ours = Path(module.__file__ or "").parent.parent
        for part in [package, f"{package}.libs"]:
            if (ours / part).exists():
                (Path(where.strip()) / part).symlink_to(ours / part)
    probe = subprocess.run([python, "-c", "import phobos"], capture_output=True, text=True, check=False, cwd=folder)
    assert "No module named 'phobos'" in probe.stderr
    return python


def workspace(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, text in {"sweep.ph": HANG, "steps.ph": FIXABLE, "plain.ph": PLAIN, "loose.ph": LOOSE}.items():
        (folder / name).write_text(text)
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, path: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text())


@contextmanager
def serving(command: list[str], folder: Path, port: int, path: str) -> Generator[None, None, None]:
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder, start_new_session=True,
            env={**node_environment(), "EXTENSIONS_GALLERY": "{}", "HOME": str(folder / "home")},
        )  # fmt: skip
    try:
        wait_for(port, path, process, log)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def vs_code(folder: Path, python: str, trusted: bool = True) -> Generator[dict[str, str], None, None]:
    """VS Code with the packaged extension, serving `folder`/work; gives the variables for a script."""
    (folder / "home").mkdir()
    data, extensions, work = folder / "data", folder / "extensions", workspace(folder / "work")
    for place, settings in (("User", USER), ("Machine", {"phobos.python": python} if python else {})):
        (data / place).mkdir(parents=True)
        (data / place / "settings.json").write_text(json.dumps(settings))
    server = ["node", str(code_server() / "out" / "node" / "entry.js"), "--config", "/dev/null"]
    where = ["--user-data-dir", str(data), "--extensions-dir", str(extensions)]
    environment = {**node_environment(), "HOME": str(folder / "home")}
    installed = subprocess.run(
        [*server, *where, "--install-extension", str(vsix()), "--force"],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stdout + installed.stderr
    port = free_port()
    options = ["--bind-addr", f"127.0.0.1:{port}", "--auth", "none", "--disable-telemetry", "--disable-update-check"]
    options += ["--disable-getting-started-override", *([] if not trusted else ["--disable-workspace-trust"])]
    with serving([*server, *where, *options, str(work)], folder, port, "/healthz"):
        yield {
            "PHOBOS_PORT": str(port),
            "PHOBOS_FOLDER": str(work),
            "PHOBOS_PLAIN_PYTHON": python,
        }


def script(name: str, folder: Path, variables: dict[str, str], limit_s: int) -> dict[str, Any]:
    """Run one of the scripts; what each of its steps saw. A step that failed raises when it is asked for."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    report = folder / "report.jsonl"
    more = {"PHOBOS_REPORT": str(report), "PHOBOS_SHOTS": str(PICTURES), "PHOBOS_BROWSER": browser()}
    said = ""
    try:
        done = subprocess.run(
            ["node", str(SCRIPTS / name)],
            env={**node_environment(), **variables, **more, "PHOBOS_EXTENSION": str(npm_folder())},
            capture_output=True, text=True, timeout=limit_s, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        said = f"{name} did not end within {limit_s} s"  # what it saw until then is judged all the same
    assert report.exists(), said
    return {step["name"]: step for step in map(json.loads, report.read_text().splitlines())}


class Tour:
    """What was seen, by step."""

    def __init__(self, steps: dict[str, Any]) -> None:
        self.steps = steps

    def __getitem__(self, name: str) -> Any:
        assert name in self.steps, f"the step {name!r} was never reached; the last was {list(self.steps)[-1]!r}"
        step = self.steps[name]
        assert "problem" not in step, step["problem"]
        return step["seen"]


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    folder = tmp_path_factory.mktemp("vscode")
    python = plain_python(folder / "plain", ("numpy", "ml_dtypes"))
    with vs_code(folder, str(python)) as variables:
        return Tour(script("main.mjs", folder, variables, 900))


def test_a_bad_barrier_has_a_squiggle(main: Tour) -> None:
    assert main["squiggle"]["mode"] == "Phobos"
    assert "Phobos" in main["squiggle"]["status"]


def test_hover_says_what_is_wrong_and_what_the_call_does(main: Tour) -> None:
    assert "PH205" in main["hover"]
    assert "some blocks go round" in main["hover"]
    assert "Waits until every block" in main["hover"]


def test_the_code_opens_the_rules_page(main: Tour) -> None:
    assert main["rule page"].startswith("# PH205 barrier-trip-count-varies")


def test_the_problem_lists_its_related_places(main: Tour) -> None:
    assert any("PH205" in row for row in main["problems"]["rows"])
    related = [row for row in main["problems"]["open"] if row not in main["problems"]["rows"]]
    seen = "\n".join([*related, main["related place"]])
    assert "sweep.ph" in seen and "4" in seen


def test_tiles_show_their_types(main: Tour) -> None:
    assert "let x: tile<f32>[1, 1024]" in main["inlay hints"].replace("[1,1024]", "[1, 1024]")


def test_a_lens_stands_above_the_kernel(main: Tour) -> None:
    text = " ".join(main["lens"]).lower()
    assert "h200" in text
    assert "run" in text and "cuda" in text


def test_the_lens_shows_the_cuda_beside(main: Tour) -> None:
    assert "total" in main["cuda"]["text"]


def test_a_built_in_is_completed(main: Tour) -> None:
    assert any("rowsum" in label for label in main["completion"]["labels"])
    assert "rowsum(" in main["completion"]["text"]


def test_a_dimension_is_renamed_everywhere(main: Tour) -> None:
    text = main["rename"]
    assert "tensor<f32>[LENGTH]" in text and "range(ctx.block.x * 64, LENGTH, ctx.blocks.x * 64)" in text


def test_a_fix_is_applied_and_the_squiggle_goes(main: Tour) -> None:
    assert any("@persistent" in title for title in main["fix"]["titles"])
    assert main["fix"]["text"].startswith("@persistent")


def test_a_file_is_formatted_and_saved(main: Tour) -> None:
    assert main["format"] == "@persistent\n" + FIXABLE.replace("N", "LENGTH")


def test_a_changed_setting_takes_effect_at_once(main: Tour) -> None:
    assert "a100" in main["setting"]["status"]
    assert "let x: tile" not in main["setting"]["text"]


def test_the_kernel_runs_in_the_terminal(main: Tour) -> None:
    text = main["run"].lower()
    assert "out" in text and "sha" in text
    assert "8192" in text


def test_a_finding_is_shown_to_happen(main: Tour) -> None:
    text = main["show it happen"]
    assert "it happens: deadlock" in text and "has left the kernel" in text


def test_a_killed_server_comes_back(main: Tour) -> None:
    assert main["killed server comes back"]["before"] == 1
    assert main["killed server comes back"]["after"] == 1
    assert "PH205" in main["killed server comes back"]["text"]


def test_the_server_restarts_on_command(main: Tour) -> None:
    assert main["restart"] == {"before": 1, "after": 1}


def test_a_broken_configuration_is_a_finding_in_its_file(main: Tour) -> None:
    assert "phobos.toml" in "\n".join(main["broken configuration"])


def test_a_folder_without_trust_gets_findings_and_runs_nothing(tmp_path: Path) -> None:
    python = plain_python(tmp_path / "plain", ("numpy", "ml_dtypes"))
    with vs_code(tmp_path, str(python), trusted=False) as variables:
        tour = Tour(script("trust.mjs", tmp_path, variables, 300))
    assert "Restricted" in tour["findings without trust"]["restricted"]
    assert "PH205" in tour["findings without trust"]["hover"]
    seen = tour["nothing runs without trust"]
    assert not any("Run the kernel at the cursor" in row for row in seen["rows"])
    assert seen["terminals"] == 0


@pytest.fixture(scope="module")
def unfit(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Path, dict[str, str]], None, None]:
    """VS Code whose Python is still to be set, in `data/Machine`; the variables for a script."""
    folder = tmp_path_factory.mktemp("unfit")
    with vs_code(folder, "") as variables:
        yield folder, variables


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("missing", ["does not start", "there is no such program", "Install Python 3.11 or newer"]),
        ("too-old", ["is 3.8.1", "needs 3.11 or newer"]),
        ("no-numpy", ["numpy", "-m pip install numpy ml-dtypes"]),
    ],
)
def test_what_is_said_about_an_unfit_python(
    scenario: str, expected: list[str], unfit: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder, variables = unfit
    if scenario == "missing":
        python = str(tmp_path / "nowhere" / "python3")
    elif scenario == "too-old":
        # No such Python can be installed here; what matters is how the answer of one is read.
        old = tmp_path / "python3.8"
        old.write_text("#!/bin/sh\necho 3.8.1\necho /usr/bin/python3.8\n")
        old.chmod(0o755)
        python = str(old)
    else:
        python = str(plain_python(tmp_path / "plain", ()))
    (folder / "data" / "Machine" / "settings.json").write_text(json.dumps({"phobos.python": python}))
    tour = Tour(script("python.mjs", tmp_path, {**variables, "PHOBOS_SCENARIO": scenario}, 300))
    for words in expected:
        assert words in tour["message"]["toasts"], tour["message"]
    assert "Phobos" in tour["message"]["status"]


def test_the_suite_inside_the_extension_host(tmp_path: Path) -> None:
    vsix()  # what it is made of, dist/ and bundled/, is what is loaded here
    python = plain_python(tmp_path / "plain", ("numpy", "ml_dtypes"))
    work = workspace(tmp_path / "work")
    (tmp_path / "home").mkdir()
    data = tmp_path / "data" / "data"
    for place, settings in (("User", USER), ("Machine", {"phobos.python": str(python)})):
        (data / place).mkdir(parents=True)
        (data / place / "settings.json").write_text(json.dumps(settings))
    port = free_port()
    main_js = code_server() / "lib" / "vscode" / "out" / "server-main.js"
    command = ["node", str(main_js), "--host", "127.0.0.1", "--port", str(port), "--without-connection-token",
        "--accept-server-license-terms", "--enable-smoke-test-driver", "--server-data-dir", str(tmp_path / "data"),
        "--extensions-dir", str(tmp_path / "ext"), "--telemetry-level", "off", "--disable-workspace-trust"]  # fmt: skip
    variables = {"PHOBOS_PORT": str(port), "PHOBOS_FOLDER": str(work), "PHOBOS_BROWSER": browser()}
    with serving(command, tmp_path, port, "/version"):
        done = subprocess.run(
            ["node", str(SCRIPTS / "host.mjs")],
            env={**node_environment(), **variables, "PHOBOS_EXTENSION": str(npm_folder())},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\nok ") >= 10 and "not ok" not in done.stdout, done.stdout


def test_what_the_package_depends_on_is_bundled_or_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=!; ]", line)[0] for line in project["dependencies"]}
    bundled = {line.split("==")[0] for line in (ROOT / "editors/vscode/bundled.txt").read_text().splitlines()}
    # The first two are asked for when a kernel is run; the third only paints terminals.
    assert needed - bundled == {"numpy", "ml-dtypes", "rich"}


def test_the_vsix_holds_no_machine_code_and_what_the_server_needs(tmp_path: Path) -> None:
    shutil.unpack_archive(vsix(), tmp_path, "zip")
    bundled = tmp_path / "extension" / "bundled"
    assert not [path for path in bundled.rglob("*") if path.suffix in (".so", ".pyd", ".dll", ".dylib")]
    program = "import sys; import phobos.lsp.serve, phobos.cli, pygls, lark; print(phobos.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(bundled)!r}); {program}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == str(bundled / "phobos" / "__init__.py"), done.stderr
    assert (tmp_path / "extension" / "dist" / "extension.js").exists()
    assert (bundled / "phobos/check/pages/PH205.md").exists()  # what a code in the list of problems opens

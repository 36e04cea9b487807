"""Neovim itself, without a screen and with one, with the plugin folder and the real server.

Both ways of starting are driven: `vim.lsp.config` and `vim.lsp.enable` (0.11 and later) and `vim.lsp.start` (0.8 to
0.10), the second by hiding the first from the plugin.
"""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.editors.parts import ROOT, neovim

HANG = """\
@persistent
@autotune(TILE in [512])
kernel sweep(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
    X[t :+ TILE] = X[t :+ TILE] + 1.0
    grid_barrier(BAR)
  }
}
"""
FIXABLE = """\
kernel steps(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] * 2.0
  }
  grid_barrier(BAR)
}
"""
INIT = """\
vim.opt.runtimepath:append('{plugin}')
vim.cmd('filetype plugin on | syntax on')
{before}
vim.opt.swapfile = false
"""
OLDER = "vim.lsp.config = nil; vim.lsp.enable = nil"


def environment(folder: Path, **more: str) -> dict[str, str]:
    bin = Path(sys.executable).parent
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NVIM", "XDG_"))}
    homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    return {**kept, **homes, "PATH": f"{bin}{os.pathsep}{kept['PATH']}", "TERM": "xterm-256color", **more}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def tour(folder: Path, older: bool) -> dict[str, Any]:
    init = write(folder, "init.lua", INIT.format(plugin=ROOT / "editors" / "nvim", before=OLDER if older else ""))
    report = folder / "report.json"
    settings = {
        "PHOBOS_FILE": str(write(folder, "sweep.ph", HANG)),
        "PHOBOS_FIXABLE": str(write(folder, "steps.ph", FIXABLE)),
        "PHOBOS_REPORT": str(report),
        **({"PHOBOS_OLD": "1"} if older else {}),
    }
    script = Path(__file__).parent / "neovim" / "tour.lua"
    done = subprocess.run(
        [neovim(), "--headless", "-u", init, "-i", "NONE", "-n", "-c", f"luafile {script}"],
        cwd=folder, env=environment(folder, **settings), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert report.exists(), done.stdout + done.stderr
    seen: dict[str, Any] = json.loads(report.read_text())
    assert "problem" not in seen, seen["problem"] + done.stderr
    assert done.returncode == 0, done.stderr
    return seen


@pytest.fixture(scope="module", params=["config", "start"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = tour(tmp_path_factory.mktemp(f"nvim-{request.param}"), older=request.param == "start")
    assert found["started_by"] == request.param
    return found


def test_the_file_is_known_and_coloured(seen: dict[str, Any]) -> None:
    assert seen["filetype"] == "phobos"
    assert seen["syntax"] == "phobos"
    assert seen["commentstring"] == "// %s"


def test_a_bad_barrier_is_marked_at_the_call(seen: dict[str, Any]) -> None:
    bad = [d for d in seen["diagnostics"] if d["code"] == "PH205"]
    assert [(d["line"], d["column"], d["severity"]) for d in bad] == [(6, 5, 1)]


def test_hover_explains_the_barrier(seen: dict[str, Any]) -> None:
    assert "grid_barrier" in seen["hover"]


def test_a_built_in_is_completed_in_unfinished_code(seen: dict[str, Any]) -> None:
    assert "grid_barrier" in seen["completion"]


def test_a_constant_is_renamed_everywhere(seen: dict[str, Any]) -> None:
    assert seen["renamed"].strip() == HANG.replace("TILE", "WIDTH").strip()


def test_a_fix_is_offered_and_applied_and_the_finding_goes(seen: dict[str, Any]) -> None:
    assert [d["code"] for d in seen["fixable"] if d["severity"] == 1] == ["PH201"]
    assert seen["actions"]
    assert seen["fixed"].startswith("@persistent\nkernel steps")
    assert [d for d in seen["after_fix"] if d["code"] == "PH201"] == []


def test_the_buffer_is_formatted(seen: dict[str, Any]) -> None:
    assert seen["formatted"].rstrip().endswith(
        "kernel loose(X: tensor<f32>[N]) {\n  X[0 :+ 4] = X[0 :+ 4] * 2.0\n}"
    )


def test_the_server_restarts_and_health_says_so(seen: dict[str, Any]) -> None:
    assert seen["restarted"]
    assert "phobos: phobos " in seen["health"], seen["health"]


def test_without_a_server_there_is_one_message_and_no_error(tmp_path: Path) -> None:
    init = write(tmp_path, "init.lua", INIT.format(plugin=ROOT / "editors" / "nvim", before=""))
    files = [str(write(tmp_path, name, HANG)) for name in ("a.ph", "b.ph")]
    done = subprocess.run(
        [neovim(), "--headless", "-u", init, "-i", "NONE", "-n", *files, "-c", "bnext", "-c", "qa!"],
        cwd=tmp_path, env={**environment(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
        timeout=180, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert said.count("pip install phobos-tools") == 1, said
    assert "Error" not in said and "stack traceback" not in said, said


def test_the_real_screen_shows_the_finding_and_the_hover(tmp_path: Path) -> None:
    before = "vim.diagnostic.config({ virtual_text = { severity = { min = vim.diagnostic.severity.WARN } } })"
    init = write(tmp_path, "init.lua", INIT.format(plugin=ROOT / "editors" / "nvim", before=before))
    path = write(tmp_path, "sweep.ph", HANG)
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    process = subprocess.Popen(
        [neovim(), "-u", init, "-i", "NONE", "-n", "+6", path],
        stdin=slave, stdout=slave, stderr=slave, cwd=tmp_path, close_fds=True, start_new_session=True,
        env={**environment(tmp_path), "LINES": "40", "COLUMNS": "140"},
    )  # fmt: skip
    os.close(slave)
    screen = b""

    def read_until(wanted: bytes, seconds: float) -> bool:
        nonlocal screen
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 0.1)
            if ready:
                screen += os.read(master, 65536)
            if wanted in screen:
                return True
        return False

    try:
        assert read_until(b"some blocks go round", 90), screen[-3000:]
        screen = b""
        os.write(master, b"^K")
        assert read_until(b"grid_barrier(bar", 90), screen[-3000:]
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.parametrize("number", range(3))
def test_what_the_page_on_editors_shows_is_taken(number: int, tmp_path: Path) -> None:
    """The three set-ups of docs/editors.md: a plugin manager's table, the folder by hand, and no plugin at all."""
    page = (ROOT / "docs/editors.md").read_text(encoding="utf-8")
    text = re.findall(r"^```lua\n(.*?)^```$", page, re.M | re.S)[number]
    text = text.replace("/path/to/phobos-tools", str(ROOT))
    if text.startswith("{"):
        text = f"vim.opt.runtimepath:append(({text.strip()}).dir)\n"
    init = write(tmp_path, "init.lua", text)
    probe = "io.stdout:write(vim.bo.filetype, ' ', tostring(vim.lsp.is_enabled('phobos')), '\\n') vim.cmd('qa!')"
    done = subprocess.run(
        [neovim(), "--headless", "--clean", "-u", init, "-i", "NONE", "-n", "kernel.ph", "-c", f"lua {probe}"],
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "phobos true", done.stdout + done.stderr

"""Where the parts are that editor tests need, as `make editors` puts them; a test skips, naming what is not there."""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXTENSION = ROOT / "editors" / "vscode"
NODE = Path(sys.prefix) / "node"


def node_environment() -> dict[str, str]:
    """The environment with node and npm of the virtual environment in front; skips without them."""
    if not (NODE / "node").exists():
        pytest.skip("node is not there: `make editors` installs it")
    environment = {name: value for name, value in os.environ.items() if not name.lower().startswith("npm_config_")}
    return {**environment, "PATH": f"{NODE}{os.pathsep}{environment['PATH']}"}


def npm_folder() -> Path:
    """The extension's folder with its packages installed."""
    if not (EXTENSION / "node_modules" / "playwright-core").exists():
        pytest.skip("the extension's packages are not there: `make editors` installs them")
    return EXTENSION


def vsix() -> Path:
    made = EXTENSION / "phobos-tools.vsix"
    if not made.exists():
        pytest.skip("the extension is not built: `make vsix` does it")
    return made


def code_server() -> Path:
    """The folder of code-server."""
    folder = ROOT / ".cache" / "vscode" / "node_modules" / "code-server"
    if not folder.exists():
        pytest.skip("VS Code for the browser is not there: `make editors` installs it")
    return folder


def browser() -> str:
    noted = ROOT / ".cache" / "browser"
    path = noted.read_text().strip() if noted.exists() else shutil.which("chromium")
    if not path or not Path(path).exists():
        pytest.skip("there is no chromium: `make editors` installs it")
    return path


def neovim() -> str:
    path = Path(sys.executable).parent / "nvim"
    if not path.exists():
        pytest.skip("Neovim is not there: `make editors` installs it")
    return str(path)


def pyodide() -> Path:
    """The folder of Python for browsers."""
    folder = ROOT / "editors" / "browser" / "node_modules" / "pyodide"
    if not folder.exists():
        pytest.skip("Pyodide is not there: `make editors` installs it")
    return folder

"""The examples that end each command's help: every option in them is one, and what takes no time is run as it is."""

from __future__ import annotations

import re
import shlex
import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from phobos.cli import available
from phobos.cli.arguments import Parser
from tests.command import phobos

EXAMPLES = Path(__file__).parents[2] / "examples"


def lines() -> list[str]:
    """Each example as it would be typed: what stands behind three spaces says what it is for."""
    texts = [import_module(f"phobos.cli.{command}").EXAMPLE for command in available()]
    return [re.split(r" {2,}", line.strip())[0] for text in texts for line in text.strip().splitlines()]


# What takes seconds, waits for a client, or asks the machine what it has.
LONG = (
    "tune", "trace gemm", "bench", "lsp", "doctor", "occupancy", "--format ptx", "--cluster", "--out staged.json",
    " < ",
)  # fmt: skip
RUN = [line for line in lines() if not any(word in line for word in LONG)]
ENDS = {"phobos check sweep.ph --severity info": 1, "phobos check sweep.ph --target h200 --set N=4096": 1}


@pytest.mark.parametrize("line", lines())
def test_its_options_are_options(line: str) -> None:
    _, command, *words = shlex.split(line.partition(" < ")[0])
    module = import_module(f"phobos.cli.{command}")
    parser = Parser(command, "", "")
    module.add_arguments(parser)
    parser.parse_args(words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the examples speak of."""
    place = tmp_path_factory.mktemp("help")
    shutil.copytree(EXAMPLES, place / "examples")
    shutil.copytree(EXAMPLES, place, dirs_exist_ok=True)
    (place / "kernels").mkdir()
    shutil.copy(EXAMPLES / "staged.ph", place / "kernels")
    shutil.copy(EXAMPLES / "hang.ph", place / "sweep.ph")
    for name in "ab":
        np.save(place / f"{name}.npy", np.ones((64, 64), np.float32))
    return place


@pytest.mark.parametrize("line", RUN)
def test_it_runs(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = phobos(*shlex.split(line)[1:])
    assert done.returncode == ENDS.get(line, 0), done.stdout + done.stderr
